// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit

// The possible events and the invariants.
extension ResilienceWorld {
    enum Event {
        case add(Int), work, answer(Int), adapt(Int), refreshEnds, time, network, expire, set
        case suspend(Int), resume(Int), cancel(Int)
    }

    var possibilities: [Event] {
        var events: [Event] = []
        for (index, operation) in operations.enumerated() where operation.outcome == nil {
            if !added.contains(index) { events += [.add(index), .add(index)] }
            if !adaptations[index].isEmpty { events += [.adapt(index), .adapt(index)] }
            if operation.state == .suspended {
                events.append(.resume(index))
            } else if operation.state != .notStarted, generator.lowBit {
                events.append(.suspend(index))
            }
            events.append(.cancel(index))
        }
        if workers.count > 0 { events += [.work, .work, .work, .work] }
        for number in server.answerable { events += [.answer(number), .answer(number)] }
        if !refreshes.isEmpty { events += [.refreshEnds, .refreshEnds] }
        if clock.nextDue != nil { events += [.time, .time] }
        if expiries > 0 { events.append(.expire) }
        return events + [.network, .set]
    }

    /// Performs one random possible event.
    mutating func step() async {
        guard let event = possibilities.randomElement(using: &generator) else { return }
        story.append("\(event)")
        happen(event)
        if !generator.chance(1, in: 6) { await settle() }
    }

    private mutating func happen(_ event: Event) {
        switch event {
        case .add(let index): add(index)
        case .work: workers.step(Int.random(in: 0..<max(workers.count, 1), using: &generator))
        case .answer(let number): answer(number)
        case .adapt(let index): adaptations[index].open()
        case .refreshEnds: endRefresh(fails: generator.chance(1, in: 4))
        case .time: clock.advanceToNext()
        case .network: network.write(network.connectivity.isOffline ? .satisfied : .unsatisfied)
        case .expire:
            expiries -= 1
            goodToken = "\(lastToken + 1_000)"
        case .set where generator.chance(1, in: 8):
            lastToken += 1
            goodToken = "\(lastToken)"
            authenticator.set(goodToken)
        case .suspend(let index): operations[index].suspendExecution()
        case .resume(let index): operations[index].resumeExecution()
        // Cancellations are rarer for operations that have not begun, because most of them have not.
        case .cancel(let index) where generator.chance(1, in: operations[index].state == .notStarted ? 30 : 5):
            cancel(index)
        case .set, .cancel: break
        }
    }

    mutating func add(_ index: Int) {
        added.insert(index)
        do { try queue.add(operations[index]) } catch { faults.append("\(index) was not added: \(error)") }
    }

    private mutating func answer(_ number: Int) {
        if network.connectivity.isOffline { return server.answer(number, .failure(.notConnected)) }
        guard server.token(of: number) == goodToken else { return server.answer(number, .status(401)) }
        switch Int.random(in: 0..<8, using: &generator) {
        case 0: server.answer(number, .status(503))
        case 1: server.answer(number, .failure(.connectionLost))
        default: server.answer(number, .status(200))
        }
    }

    private mutating func endRefresh(fails: Bool) {
        if fails { return refreshes.open(.failure(URLError(.timedOut))) }
        lastToken += 1
        goodToken = "\(lastToken)"
        refreshes.open(.success(goodToken))
    }

    /// Cancels an operation and checks that it has an outcome, waits for nothing and sends nothing more.
    ///
    /// Another thread that is just entering a waiting list for the operation leaves it again. This is checked at the
    /// end.
    private mutating func cancel(_ index: Int) {
        let operation = operations[index], phase = phase(index)
        askedToEnd.insert(index)
        operation.cancel()
        guard let outcome = operation.outcome else {
            return faults.append("\(index) was canceled (\(phase)) and has no outcome")
        }
        // The result may have arrived just before the cancellation.
        guard outcome.cancellationCause != nil else { return }
        server.close(index)
        cancelled.append(phase)
        if operation.waitReason != nil { faults.append("\(index) was canceled (\(phase)) and waits") }
        if server.isInFlight(index) { faults.append("\(index) was canceled (\(phase)) and is in flight") }
    }

    /// Describes everything that has not ended, to help find the reason.
    var rest: String {
        let states = operations.indices.map { "\(operations[$0].state) \(phase($0))" }
        return "\(states), \(queue.counts), \(server.openCount) tasks, \(refreshes.count) refreshes, "
            + "\(clock.pendingCount) timers, \(offlineWaiting.waitingCount) offline, "
            + "\(authenticator.postponedCount) without a credential"
    }

    /// Runs everything to its end.
    ///
    /// Returns `false` if something does not end.
    mutating func finish() async -> Bool {
        for index in operations.indices where !added.contains(index) { add(index) }
        network.write(.satisfied)
        let began = ContinuousClock.now
        while operations.contains(where: { $0.outcome == nil }) || queue.counts.unended > 0 || server.openCount > 0 {
            if began.duration(to: .now) > .seconds(120) { return false }
            for operation in operations { operation.resumeExecution() }
            workers.runAll()
            for number in server.answerable { answer(number) }
            for gates in adaptations { gates.open() }
            if !refreshes.isEmpty { endRefresh(fails: false) }
            await settle()
            if server.answerable.isEmpty, refreshes.isEmpty { clock.advanceToNext() }
        }
        // The remaining timers of the realm, the throttle and others have nothing left to do.
        clock.advance(by: .seconds(3_600))
        while !refreshes.isEmpty || clock.pendingCount > 0 || offlineWaiting.waitingCount > 0
            || authenticator.postponedCount > 0
        {
            if began.duration(to: .now) > .seconds(120) { return false }
            refreshes.open(.success(goodToken))
            clock.advance(by: .seconds(3_600))
            await Task.yield()
        }
        await withCheckedContinuation { continuation in callbacks.async { continuation.resume() } }
        check()
        return true
    }

    /// Checks that each operation has one outcome, which was reported once, and that no slot and no waiter is left.
    ///
    /// A cancellation suppresses reports that were not made yet.
    private mutating func check() {
        faults += server.faults
        for (index, operation) in operations.enumerated() {
            let expected =
                switch operation.outcome {
                case .success?: "success"
                case .failure?: "failure"
                case .cancelled?: "cancelled"
                case nil: "none"
                }
            let told = told[index].events
            let isSilenced = told == [] && askedToEnd.contains(index) && expected != "cancelled"
            if told != [expected], !isSilenced { faults.append("\(index) ended by \(expected) and told \(told)") }
            if !operation.isFinished { faults.append("\(index) is not finished") }
        }
        let counts = queue.counts
        if counts.running + counts.resting + counts.held > 0 { faults.append("the queue has \(counts)") }
        if throttle.waitingCount(of: "key") > 0 { faults.append("an operation waits for the key") }
        let probes = [SlotProbe(), SlotProbe(), SlotProbe()]
        for probe in probes { _ = try? queue.add(probe) }
        workers.runAll()
        if probes.count(where: { $0.isExecuting }) != 2 { faults.append("the queue has not two places any more") }
        for probe in probes {
            workers.runAll()
            probe.finish(withResult: ())
        }
        workers.runAll()
    }
}

/// Occupies a slot until the test finishes the operation.
private final class SlotProbe: AsyncOperation<Void, Never>, @unchecked Sendable {
    // Sendable: the class has no state.
    override func main() {}
}

extension SeededGenerator {
    /// A random bit that does not advance the generator.
    fileprivate var lowBit: Bool {
        var copy = self
        return copy.next() & 1 == 0
    }
}
