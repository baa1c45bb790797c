// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct SharedOperationTests {
    private let flights = SharedOperations<String, Int, Flaw>()

    @Test func `operations with equal keys share one run and its result`() {
        let runs = Runs()
        let askers = (0..<3).map { _ in flights.operation(for: "a") { runs.make() } }
        let other = flights.operation(for: "b") { runs.make() }
        #expect(runs.all.isEmpty)
        for asker in askers + [other] { asker.start() }
        #expect(runs.all.count == 2)
        runs.all[0].finish(withResult: 7)
        #expect(askers.allSatisfy { $0.outcome == .success(7) && $0.isFinished })
        #expect(other.state == .executing)
        runs.all[1].finish(withError: .first)
        #expect(other.outcome == .failure(.first))
    }

    @Test func `each asker has its own handlers and callback queue, and can be awaited`() async throws {
        let runs = Runs()
        let first = flights.operation(for: "a") { runs.make() }, second = flights.operation(for: "a") { runs.make() }
        let queues = [MarkedQueue(), MarkedQueue()]
        let told = EventRecorder<String>()
        for (number, asker) in [first, second].enumerated() {
            asker.callbackQueue = queues[number].queue
            asker.successHandler = { told.record("\(number) \($0) \(queues[number].isCurrent)") }
            asker.start()
        }
        runs.all[0].finish(withResult: 5)
        #expect(try await first.value == 5)
        for queue in queues { await queue.queue.drain() }
        #expect(Set(told.events) == ["0 5 true", "1 5 true"])
    }

    @Test func `canceling one asker ends only its share, and canceling the last one cancels the run`() {
        let runs = Runs()
        let askers = (0..<3).map { _ in flights.operation(for: "a") { runs.make() } }
        for asker in askers { asker.start() }
        askers[0].cancel()
        askers[2].cancel()
        #expect(askers[0].isFinished && askers[2].isFinished)
        #expect(runs.all[0].state == .executing && askers[1].state == .executing)
        askers[1].cancel(because: .requested("enough"))
        #expect(runs.all[0].cancellationCause?.code == .allAskersLeft)
        #expect(runs.all[0].cancellationCause?.underlyingCause == .requested("enough"))
        #expect(runs.all[0].isFinished)
    }

    @Test func `a run that limits its own priority is not raised repeatedly`() {
        let run = Capped()
        let askers = [Operation.QueuePriority.high, .veryHigh, .veryHigh].map { priority in
            let asker = flights.operation(for: "a") { run }
            asker.queuePriority = priority
            return asker
        }
        for asker in askers { asker.start() }
        #expect(run.queuePriority == .normal)
        #expect(run.sets.value == 2)
        run.finish(withResult: 1)
        for asker in askers { #expect(asker.isFinished) }
    }

    @Test func `an asker canceled before its start creates no run`() {
        let runs = Runs()
        let asker = flights.operation(for: "a") { runs.make() }
        asker.cancel()
        asker.start()
        #expect(asker.isFinished && runs.all.isEmpty)
    }

    @Test func `the timeout of one asker does not affect the others`() {
        let runs = Runs()
        let clock = ManualClock()
        let hasty = flights.operation(for: "a") { runs.make() }, patient = flights.operation(for: "a") { runs.make() }
        hasty.clock = clock
        hasty.timeout = .seconds(1)
        for asker in [hasty, patient] { asker.start() }
        clock.advance(by: .seconds(1))
        #expect(hasty.cancellationCause?.code == .timedOut)
        runs.all[0].finish(withResult: 1)
        #expect(patient.outcome == .success(1))
    }

    @Test func `canceling the run cancels all of its askers with the same cause`() {
        let runs = Runs()
        let askers = (0..<2).map { _ in flights.operation(for: "a") { runs.make() } }
        for asker in askers { asker.start() }
        runs.all[0].cancel(because: .requested("no more"))
        #expect(askers.allSatisfy { $0.cancellationCause == .requested("no more") && $0.isFinished })
    }

    @Test func `an asker that starts after the end begins a new run, whatever the outcome was`() {
        let runs = Runs()
        for number in 0..<4 {
            let asker = flights.operation(for: "a") { runs.make() }
            asker.start()
            #expect(runs.all.count == number + 1)
            switch number {
            case 0: runs.all[number].finish(withResult: 1)
            case 1: runs.all[number].finish(withError: .first)
            default: asker.cancel()
            }
            #expect(asker.isFinished)
        }
    }

    @Test func `a new run begins only after the previous run has wound down`() async {
        let runs = Runs(windsDown: true)
        let first = flights.operation(for: "a") { runs.make() }, second = flights.operation(for: "a") { runs.make() }
        first.start()
        first.cancel()
        second.start()
        #expect(runs.all.count == 2)
        #expect(runs.all[0].state == .cancelled && !runs.all[0].isFinished)
        #expect(runs.all[1].calls.events.isEmpty)
        // The third run waits for the first one, although the second run was canceled before it began.
        second.cancel()
        let third = flights.operation(for: "a") { runs.make() }
        third.start()
        #expect(runs.all[1].isFinished && runs.all[2].calls.events.isEmpty)
        runs.all[0].finish(withResult: 0)
        #expect(await runs.all[2].calls.events(atLeast: 1) == ["main"])
        runs.all[2].finish(withResult: 3)
        #expect(third.outcome == .success(3))
    }

    @Test func `the run has the highest priority of its askers`() {
        let runs = Runs()
        func ask(_ priority: Operation.QueuePriority) {
            let asker = flights.operation(for: "a") { runs.make() }
            asker.queuePriority = priority
            asker.start()
        }
        ask(.normal)
        #expect(runs.all[0].queuePriority == .normal)
        ask(.veryHigh)
        #expect(runs.all[0].queuePriority == .veryHigh)
        ask(.low)
        #expect(runs.all[0].queuePriority == .veryHigh)
        runs.all[0].finish(withResult: 1)
        ask(.high)
        #expect(runs.all[1].queuePriority == .high)
        runs.all[1].finish(withResult: 1)
    }

    @Test func `askers in both kinds of queue get the results of a run that executes a closure`() async throws {
        let bodies = Tally()
        let gate = Gate()
        let plain = OperationQueue()
        let own = QueueManager("askers", width: 2)
        let askers = (0..<4).map { _ in
            flights.operation(for: "a") {
                ClosureOperation { () throws(Flaw) -> Int in
                    gate.wait()
                    return bodies.add()
                }
            }
        }
        for asker in askers[0..<2] { plain.addOperation(asker) }
        for asker in askers[2..<4] { try own.add(asker) }
        // All four askers have begun before the closure continues.
        for asker in askers { for await state in asker.states where state == .executing { break } }
        gate.open()
        for asker in askers { #expect(try await asker.value >= 1) }
        #expect(bodies.value <= 4)
    }

    @Test func `a run can execute in its own queue`() async throws {
        for isOurs in [true, false] {
            var options = SharingOptions()
            options.place = isOurs ? .queue(QueueManager("runs", width: 1)) : .queue(OperationQueue())
            let flights = SharedOperations<Int, Int, Flaw>(options)
            let runs = Runs()
            let askers = (0..<2).map { _ in flights.operation(for: 1) { runs.make() } }
            for asker in askers { asker.start() }
            #expect(await runs.all[0].calls.events(atLeast: 1) == ["main"])
            runs.all[0].finish(withResult: 4)
            for asker in askers { #expect(try await asker.value == 4) }
            let left = flights.operation(for: 1) { runs.make() }
            left.start()
            left.cancel()
            await runs.all[1].end()
            #expect(runs.all[1].cancellationCause?.code == .allAskersLeft)
        }
    }

    @Test func `a run and its askers can use the same queue with one slot`() async throws {
        let queue = QueueManager("narrow", width: 1)
        var options = SharingOptions()
        options.place = .queue(queue)
        let flights = SharedOperations<Int, Int, Flaw>(options)
        let runs = Runs()
        let askers = (0..<3).map { _ in flights.operation(for: 1) { runs.make() } }
        try queue.add(askers)
        for asker in askers { for await state in asker.states where state == .executing { break } }
        #expect(await runs.all[0].calls.events(atLeast: 1) == ["main"])
        #expect(askers[0].waitReason?.kind == .sharedRun)
        runs.all[0].finish(withResult: 4)
        await queue.drained()
        #expect(askers.map(\.outcome) == [.success(4), .success(4), .success(4)])
    }

    @Test func `the last canceled asker ends after the run has wound down, and others end immediately`() async {
        let runs = Runs(windsDown: true)
        let askers = (0..<2).map { _ in flights.operation(for: "a") { runs.make() } }
        for asker in askers { asker.start() }
        askers[0].cancel()
        #expect(Look(askers[0]) == .cancelled)
        askers[1].cancel()
        #expect(Look(askers[1]) == .windingDown)
        runs.all[0].finish(withResult: 0)
        #expect(Look(askers[1]) == .cancelled)
        let after = flights.operation(for: "a") { runs.make() }
        after.start()
        runs.all[1].cancel()
        #expect(Look(after) == .windingDown)
        runs.all[1].finish(withResult: 0)
        #expect(Look(after) == .cancelled)
    }

    @Test func `a run that waits for another operation gives up the slot of its asker`() async throws {
        let queue = QueueManager("login", width: 1)
        let runs = Runs()
        let login = ClosureOperation { 1 }
        let inner = SharedOperations<Int, Int, Flaw>(
            {
                var options = SharingOptions()
                options.place = .queue(queue)
                return options
            }())
        let askers = [
            flights.operation(for: "dependency") {
                let run = runs.make()
                run.addDependency(login)
                return run
            },
            // The run of this asker shares another run, which needs a slot of the same queue.
            flights.operation(for: "share") { inner.operation(for: 1) { runs.make() } },
        ]
        try queue.add([askers[0], login])
        #expect(await eventually { login.isFinished && runs.all.first?.isExecuting == true })
        try queue.add(askers[1])
        #expect(await eventually { runs.all.count == 2 && runs.all[1].isExecuting })
        #expect(askers.allSatisfy { $0.waitReason?.kind == .sharedRun })
        for run in runs.all { run.finish(withResult: 4) }
        await queue.drained()
        #expect(askers.map(\.outcome) == [.success(4), .success(4)])
    }

    @Test(arguments: [false, true])
    func `a group as a run gives the slot of its asker to its children`(isGivenTheQueue: Bool) async throws {
        let queue = QueueManager("shared group", width: 1)
        let flights = SharedOperations<Int, Int, GroupFailure>()
        let children = (0..<3).map { HandDriven("\($0)") }
        let asker = flights.operation(for: 1) {
            GroupOperation(on: isGivenTheQueue ? queue : nil) { scope in
                try scope.add(children[0])
                return try await scope.run(children[1]) + scope.run(children[2])
            }
        }
        try queue.add(asker)
        for child in children {
            #expect(await child.calls.events(atLeast: 1) == ["main"])
            // The children count against the width of the queue, as if the group ran in the queue.
            #expect(children.filter { $0.isExecuting }.count == 1)
            if child === children[0] { queue.isSuspended = true }
            child.finish(withResult: 1)
            if child === children[0] {
                await child.ended()
                #expect(!children[1].isExecuting)
                queue.isSuspended = false
            }
        }
        #expect(await asker.finalOutcome.result == 2)
        await queue.drained()
    }

    @Test func `a run that begins after its first asker left does not need the slot of that asker`() async throws {
        let queue = QueueManager("left", width: 1), flights = SharedOperations<Int, Int, GroupFailure>()
        let (late, child, holder) = (HandDriven("late"), HandDriven("child"), HandDriven("holder"))
        let make = { @Sendable () -> TypedOperation<Int, GroupFailure> in
            let run = GroupOperation { scope in try await scope.run(child) }
            run.addDependency(late)
            return run
        }
        let first = flights.operation(for: 1, make: make), second = flights.operation(for: 1, make: make)
        try queue.add(first)
        #expect(await eventually { first.waitReason?.kind == .sharedRun })
        second.start()
        try queue.add(holder)
        #expect(await holder.calls.events(atLeast: 1) == ["main"])
        first.cancel()
        await first.ended()
        late.startAndFinish(withResult: 1)
        #expect(await eventually { child.isExecuting })
        child.finish(withResult: 3)
        #expect(await second.finalOutcome.result == 3)
        holder.finish(withResult: 1)
        await queue.drained()
    }

    @Test func `a canceled asker keeps its slot until the run that executes in it has ended`() async throws {
        let queue = QueueManager("first asker", width: 1)
        let runs = Runs()
        let first = flights.operation(for: "a") { runs.make() }, second = flights.operation(for: "a") { runs.make() }
        let next = HandDriven("next")
        try queue.add([first, next])
        #expect(await eventually { runs.all.count == 1 && runs.all[0].isExecuting })
        second.start()
        // The thread of the queue may not have returned from the body yet. Then the cancellation takes effect later.
        first.cancel()
        #expect(Look(first) == .windingDown && runs.all[0].state == .executing)
        #expect(next.calls.events.isEmpty)
        runs.all[0].finish(withResult: 2)
        #expect(await eventually { first.isFinished })
        #expect(second.outcome == .success(2) && first.isCancelled)
        #expect(await next.calls.events(atLeast: 1) == ["main"])
        next.finish(withResult: 1)
        await queue.drained()
    }

    @Test func `an asker canceled while another is notified of the end still ends with the run`() {
        let runs = Runs(windsDown: true)
        let askers = (0..<3).map { _ in flights.operation(for: "a") { runs.make() } }
        for asker in askers { asker.start() }
        askers[0].addObserver(isWaiter: true) { _ in askers[1].cancel() }
        runs.all[0].cancel(because: .requested("no more"))
        #expect(askers[1].cancellationCause == .requested)
        for asker in askers { #expect(Look(asker) == .windingDown) }
        runs.all[0].finish(withResult: 0)
        for asker in askers { #expect(Look(asker) == .cancelled) }
    }

    @Test func `a dependent of an asker begins after the run has ended`() async throws {
        for _ in 0..<100 {
            let run = SyncProbe { $0.finish(withResult: 1) }
            let asker = flights.operation(for: "ended") { run }
            let after = SyncProbe { $0.finish(withResult: run.isFinished ? 1 : 0) }
            try after.depend(on: asker, otherwise: .cancel)
            let queue = QueueManager("order", width: 2)
            try queue.add([after, asker])
            #expect(try await after.value == 1)
            await queue.drained()
        }
    }

    @Test func `a run may itself share another run`() {
        let runs = Runs()
        let outer = SharedOperations<Int, Int, Flaw>()
        let askers = (0..<3).map { number in
            outer.operation(for: number % 2) { [flights] in flights.operation(for: "a") { runs.make() } }
        }
        for asker in askers { asker.start() }
        #expect(runs.all.count == 1)
        runs.all[0].finish(withResult: 9)
        #expect(askers.allSatisfy { $0.outcome == .success(9) })
    }

    @Test func `a run ends without its body if its only asker is canceled while the run is created`() {
        let runs = Runs()
        let asker = Locked<SharedOperation<Int, Flaw>?>(nil)
        let shared = flights.operation(for: "a") {
            asker.withLock { $0 }?.cancel()
            return runs.make()
        }
        asker.withLock { $0 = shared }
        shared.start()
        #expect(shared.isCancelled && runs.all[0].isFinished && runs.all[0].calls.events.isEmpty)
        asker.withLock { $0 = nil }
    }
}

/// An operation that limits its priority to normal.
private final class Capped: AsyncOperation<Int, Flaw>, @unchecked Sendable {
    // Sendable: everything that changes is behind a lock.

    let sets = Tally()

    override var queuePriority: Operation.QueuePriority {
        get { super.queuePriority }
        // After 100 calls it accepts the value, so that an endless loop ends and the test fails.
        set { super.queuePriority = sets.add() > 100 || newValue.rawValue < 0 ? newValue : .normal }
    }

    override func main() {}
}
