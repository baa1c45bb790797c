// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit
import Testing

@Suite("Results that are kept for a time to live", .timeLimit(.minutes(3)))
struct TimeToLiveTests {
    private let clock = ManualClock()
    private let flights: SharedOperations<String, Int, Flaw>
    private let runs = Runs()

    init() {
        flights = SharedOperations(timeToLive: .seconds(10), clock: clock)
    }

    private func ask(_ key: String = "a") -> AsyncOperation<Int, Flaw> {
        let participant = flights.operation(for: key) { [runs] in runs.make() }
        participant.start()
        return participant
    }

    @Test func `a kept result is used within the time to live, and a new run begins afterward`() {
        let first = ask()
        runs.all[0].finish(withResult: 1)
        clock.advance(by: .milliseconds(9_999))
        #expect(ask().outcome == .success(1))
        clock.advance(by: .milliseconds(1))
        #expect(clock.pendingCount == 0)
        let late = ask()
        #expect(late.state == .executing && runs.all.count == 2)
        runs.all[1].finish(withResult: 2)
        #expect(late.outcome == .success(2) && first.outcome == .success(1))
    }

    @Test func `forget and forgetAll release kept results early`() {
        let first = ask(), other = ask("b")
        for run in runs.all { run.finish(withResult: 1) }
        #expect(clock.pendingCount == 2)
        flights.forget("a")
        flights.forget("c")
        #expect(clock.pendingCount == 1)
        #expect(ask("b").isFinished)
        let second = ask()
        #expect(second.state == .executing)
        // A run that has not ended is not forgotten.
        flights.forget("a")
        #expect(ask().state == .executing && runs.all.count == 3)
        flights.forgetAll()
        #expect(clock.pendingCount == 0)
        runs.all[2].finish(withResult: 3)
        #expect(first.isFinished && other.isFinished && second.outcome == .success(3))
        flights.forgetAll()
    }

    @Test func `an expired timer is released with the other objects that leave the table`() {
        final class Piece {}
        final class Timer: OperationTimer {
            func cancel() {}
        }
        var table = FlightTable<Int, Piece, Piece>()
        weak var timer: Timer?
        autoreleasing {
            let run = Piece(), start = OperationInstant(offset: .zero)
            guard case .make(let number) = table.join(Piece(), 1, urgency: 0, now: start) else { return }
            _ = table.didMake(run, 1, number)
            let end = start.advanced(by: .seconds(1))
            _ = table.runEnded(run, 1, number, isCancelled: false, keepUntil: end)
            let made = Timer()
            timer = made
            let isKept = table.keep(made, 1, number)
            #expect(isKept)
        }
        table.expire(1, 1)
        #expect(timer != nil)
        #expect(table.count == 0)
        autoreleasing { _ = table.takeTrash() }
        #expect(timer == nil)
    }

    @Test func `kept results and their timers are released with the shared operations`() {
        let clock = ManualClock()
        let census = LiveObjects()
        autoreleasing {
            let flights = census.track(SharedOperations<String, Int, Flaw>(timeToLive: .seconds(10), clock: clock))
            let participant = census.track(
                flights.operation(for: "a") {
                    census.track(HandDriven(hooks: .init(main: { $0.finish(withResult: 1) })))
                })
            participant.start()
            #expect(clock.pendingCount == 1)
        }
        #expect(clock.pendingCount == 0)
        #expect(census.count == 0, "\(census.types)")
    }

    @Test func `the longest time to live keeps a result without a timer`() {
        let flights = SharedOperations<Int, Int, Flaw>(timeToLive: .seconds(Int64.max), clock: clock)
        for _ in 0..<2 {
            let participant = flights.operation(for: 1) { [runs] in runs.make() }
            participant.start()
            runs.all[0].finishIfNeeded()
            #expect(participant.outcome == .success(1))
            clock.advance(by: .seconds(1_000_000))
        }
        #expect(runs.all.count == 1 && clock.pendingCount == 0)
    }
}

extension HandDriven {
    fileprivate func finishIfNeeded() { if outcome == nil { finish(withResult: 1) } }
}
