// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct SharedOperationTests {
    private let runs = Runs()
    private let flights = SharedOperations<String, Int, Flaw>()

    @Test func `each asker has its own handlers and callback queue, and can be awaited`() async throws {
        let first = flights.operation(for: "a") { runs.make() }, second = flights.operation(for: "a") { runs.make() }
        let queues = [MarkedQueue(), MarkedQueue()]
        let told = EventRecorder<String>()
        for (number, participant) in [first, second].enumerated() {
            participant.callbackQueue = queues[number].queue
            participant.successHandler = { told.record("\(number) \($0) \(queues[number].isCurrent)") }
            participant.start()
        }
        runs.all[0].finish(withResult: 5)
        #expect(try await first.value == 5)
        for queue in queues { await queue.queue.drain() }
        #expect(Set(told.events) == ["0 5 true", "1 5 true"])
    }

    @Test func `canceling one asker ends only its share, and canceling the last one cancels the run`() {
        let participants = (0..<3).map { _ in flights.operation(for: "a") { runs.make() } }
        for participant in participants { participant.start() }
        participants[0].cancel()
        participants[2].cancel()
        #expect(participants[0].isFinished && participants[2].isFinished)
        #expect(runs.all[0].state == .executing && participants[1].state == .executing)
        participants[1].cancel(because: .requested("enough"))
        #expect(runs.all[0].cancellationCause?.code == .allAskersLeft)
        #expect(runs.all[0].cancellationCause?.underlyingCause == .requested("enough"))
        #expect(runs.all[0].isFinished)
    }

    @Test func `operations with a key that does not equal itself end, but share nothing`() async throws {
        let flights = SharedOperations<Double, Int, Flaw>()
        let participants = (0..<2).map { _ in flights.operation(for: .nan) { runs.make() } }
        for participant in participants { participant.start() }
        #expect(runs.all.count == 2)
        participants[0].cancel()
        await participants[0].ended()
        runs.all[1].finish(withResult: 7)
        #expect(try await participants[1].value == 7)
    }

    @Test func `a run that limits its own priority is not raised repeatedly`() {
        let run = Capped()
        let participants = [Operation.QueuePriority.high, .veryHigh, .veryHigh].map { priority in
            let participant = flights.operation(for: "a") { run }
            participant.queuePriority = priority
            return participant
        }
        for participant in participants { participant.start() }
        #expect(run.queuePriority == .normal)
        #expect(run.sets.value == 2)
        run.finish(withResult: 1)
        for participant in participants { #expect(participant.isFinished) }
    }

    @Test func `an asker canceled before its start creates no run`() {
        let participant = flights.operation(for: "a") { runs.make() }
        participant.cancel()
        participant.start()
        #expect(participant.isFinished && runs.all.isEmpty)
    }

    @Test func `the timeout of one asker does not affect the others`() {
        let clock = ManualClock()
        let hasty = flights.operation(for: "a") { runs.make() }, patient = flights.operation(for: "a") { runs.make() }
        hasty.clock = clock
        hasty.timeout = .seconds(1)
        for participant in [hasty, patient] { participant.start() }
        clock.advance(by: .seconds(1))
        #expect(hasty.cancellationCause?.code == .timedOut)
        runs.all[0].finish(withResult: 1)
        #expect(patient.outcome == .success(1))
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
        func ask(_ priority: Operation.QueuePriority) {
            let participant = flights.operation(for: "a") { runs.make() }
            participant.queuePriority = priority
            participant.start()
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
        let participants = (0..<4).map { _ in
            flights.operation(for: "a") {
                ClosureOperation { () throws(Flaw) -> Int in
                    gate.wait()
                    return bodies.add()
                }
            }
        }
        for participant in participants[0..<2] { plain.addOperation(participant) }
        for participant in participants[2..<4] { try own.add(participant) }
        // All four participants have begun before the closure continues.
        for participant in participants { for await state in participant.states where state == .executing { break } }
        gate.open()
        for participant in participants { #expect(try await participant.value >= 1) }
        #expect(bodies.value <= 4)
    }

    @Test func `a run can execute in its own queue`() async throws {
        for isOurs in [true, false] {
            let flights: SharedOperations<Int, Int, Flaw> =
                isOurs
                ? SharedOperations(on: QueueManager("runs", width: 1)) : SharedOperations(on: OperationQueue())
            let runs = Runs()
            let participants = (0..<2).map { _ in flights.operation(for: 1) { runs.make() } }
            for participant in participants { participant.start() }
            #expect(await runs.all[0].calls.events(atLeast: 1) == ["main"])
            runs.all[0].finish(withResult: 4)
            for participant in participants { #expect(try await participant.value == 4) }
            let left = flights.operation(for: 1) { runs.make() }
            left.start()
            left.cancel()
            await runs.all[1].ended()
            #expect(runs.all[1].cancellationCause?.code == .allAskersLeft)
        }
    }

    @Test func `a run and its askers can use the same queue with one slot`() async throws {
        let queue = QueueManager("narrow", width: 1)
        let flights = SharedOperations<Int, Int, Flaw>(on: queue)
        let participants = (0..<3).map { _ in flights.operation(for: 1) { runs.make() } }
        try queue.add(participants)
        for participant in participants { for await state in participant.states where state == .executing { break } }
        #expect(await runs.all[0].calls.events(atLeast: 1) == ["main"])
        #expect(participants[0].waitReason?.kind == .sharedRun)
        runs.all[0].finish(withResult: 4)
        await queue.drained()
        #expect(participants.map(\.outcome) == [.success(4), .success(4), .success(4)])
    }

    @Test(arguments: [false, true])
    func `a queue that contains the first asker accepts the run, although it is full or closed`(
        isClosed: Bool
    ) async throws {
        let queue = QueueManager("full", width: 1), flights = SharedOperations<Int, Int, any Error>(on: queue)
        let blocker = HandDriven("blocker"), participant = flights.operation(for: 1) { ClosureOperation { 2 } }
        let refused = flights.operation(for: 2) { ClosureOperation { 3 } }
        try queue.add([blocker, participant])
        queue.capacity = 1
        let closing = Task { await isClosed ? queue.shutDown(grace: .seconds(60)) : [] }
        if isClosed { #expect(await eventually { queue.snapshot.isClosed }) }
        refused.start()
        #expect(refused.cancellationCause?.code == .runRefused)
        await blocker.finishOnceBegun(withResult: 1)
        await queue.drained()
        #expect(participant.outcome?.result == 2)
        #expect(await closing.value.isEmpty)
    }

    @Test func `a queue that was shut down refuses a run that its canceled first asker is creating`() async throws {
        let queue = QueueManager("shut down"), flights = SharedOperations<Int, Int, any Error>(on: queue)
        let made = Gate(), mayReturn = Gate()
        let first = flights.operation(for: 1) {
            made.open()
            mayReturn.wait()
            return ClosureOperation { 2 }
        }
        let outside = flights.operation(for: 1) { ClosureOperation { 3 } }
        try queue.add(first)
        await made.passage()
        outside.start()
        #expect(await queue.shutDown(grace: .zero).count == 1 && first.isCancelled)
        mayReturn.open()
        await outside.ended()
        #expect(outside.cancellationCause?.code == .runRefused)
        await queue.drained()
    }

    @Test func `a run that waits for another operation gives up the slot of its asker`() async throws {
        let queue = QueueManager("login", width: 1)
        let login = ClosureOperation { 1 }
        let inner = SharedOperations<Int, Int, Flaw>(on: queue)
        let participants = [
            flights.operation(for: "dependency") {
                let run = runs.make()
                run.addDependency(login)
                return run
            },
            // The run of this participant shares another run, which needs a slot of the same queue.
            flights.operation(for: "share") { inner.operation(for: 1) { runs.make() } },
        ]
        try queue.add([participants[0], login])
        #expect(await eventually { login.isFinished && runs.all.first?.isExecuting == true })
        try queue.add(participants[1])
        #expect(await eventually { runs.all.count == 2 && runs.all[1].isExecuting })
        #expect(participants.allSatisfy { $0.waitReason?.kind == .sharedRun })
        for run in runs.all { run.finish(withResult: 4) }
        await queue.drained()
        #expect(participants.map(\.outcome) == [.success(4), .success(4)])
    }

    @Test(arguments: [false, true])
    func `a group as a run gives the slot of its asker to its children`(isGivenTheQueue: Bool) async throws {
        let queue = QueueManager("shared group", width: 1)
        let flights = SharedOperations<Int, Int, GroupFailure>()
        let children = (0..<3).map { HandDriven("\($0)") }
        let participant = flights.operation(for: 1) {
            GroupOperation(on: isGivenTheQueue ? queue : nil) { scope in
                try scope.add(children[0])
                return try await scope.run(children[1]) + scope.run(children[2])
            }
        }
        try queue.add(participant)
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
        #expect(await participant.finalOutcome.result == 2)
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
        await first.cancelAndEnd()
        late.startAndFinish(withResult: 1)
        #expect(await eventually { child.isExecuting })
        child.finish(withResult: 3)
        #expect(await second.finalOutcome.result == 3)
        holder.finish(withResult: 1)
        await queue.drained()
    }

    @Test func `a canceled asker keeps its slot until the run that executes in it has ended`() async throws {
        let queue = QueueManager("first asker", width: 1)
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

    /// A pool whose threads may always wait.
    private struct Pool: ThreadOwner {
        func threadWillWait() -> Bool { true }
        func threadDidWait() {}
    }

    @Test func `while a hook of a run waits, other operations can use the slot of its asker`() async throws {
        let queue = QueueManager("first asker", width: 1), next = ClosureOperation { 1 }
        let participant = flights.operation(for: "a") { runs.make() }
        try queue.add(participant)
        #expect(await eventually { participant.isExecuting && runs.all.first?.isExecuting == true })
        let run = runs.all[0]
        try queue.add(next)
        let result = try await TestThread.run {
            var result: Int?
            BorrowedThread.run(by: Pool()) {
                result = BodyWait.within(run, isHook: true) { try? next.startAndWait() }
            }
            return result
        }
        #expect(result == 1)
        run.finish(withResult: 2)
        await queue.drained()
        #expect(participant.outcome == .success(2))
    }

    @Test func `an asker canceled while another is notified of the end still ends with the run`() {
        let runs = Runs(windsDown: true)
        let participants = (0..<3).map { _ in flights.operation(for: "a") { runs.make() } }
        for participant in participants { participant.start() }
        participants[0].addObserver(isWaiter: true) { _ in participants[1].cancel() }
        runs.all[0].cancel(because: .requested("no more"))
        #expect(participants[1].cancellationCause == .requested)
        for participant in [participants[0], participants[2]] {
            #expect(participant.cancellationCause == .requested("no more"))
        }
        for participant in participants { #expect(Look(participant) == .windingDown) }
        runs.all[0].finish(withResult: 0)
        for participant in participants { #expect(Look(participant) == .cancelled) }
    }

    @Test func `a dependent of an asker begins after the run has ended`() async throws {
        for _ in 0..<100 {
            let run = SyncProbe { $0.finish(withResult: 1) }
            let participant = flights.operation(for: "ended") { run }
            let after = SyncProbe { $0.finish(withResult: run.isFinished ? 1 : 0) }
            try after.depend(on: participant, otherwise: .cancel)
            let queue = QueueManager("order", width: 2)
            try queue.add([after, participant])
            #expect(try await after.value == 1)
            await queue.drained()
        }
    }

    @Test func `a run may itself share another run`() {
        let outer = SharedOperations<Int, Int, Flaw>()
        let participants = (0..<3).map { number in
            outer.operation(for: number % 2) { [flights] in flights.operation(for: "a") { runs.make() } }
        }
        for participant in participants { participant.start() }
        #expect(runs.all.count == 1)
        runs.all[0].finish(withResult: 9)
        #expect(participants.allSatisfy { $0.outcome == .success(9) })
    }

    @Test func `a run ends without its body if its only asker is canceled while the run is created`() {
        let participant = Locked<AsyncOperation<Int, Flaw>?>(nil)
        let shared = flights.operation(for: "a") {
            participant.withLock { $0 }?.cancel()
            return runs.make()
        }
        participant.withLock { $0 = shared }
        shared.start()
        #expect(shared.isCancelled && runs.all[0].isFinished && runs.all[0].calls.events.isEmpty)
        participant.withLock { $0 = nil }
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
