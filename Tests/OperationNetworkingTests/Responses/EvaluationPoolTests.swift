// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Tests the threads on which results are evaluated, and when such a thread is woken.
@Suite("Threads that evaluate results", .timeLimit(.minutes(1)))
struct EvaluationPoolTests {
    private let pool = EvaluationPool()
    private let done = EventRecorder<Int>()

    /// Runs a closure on a thread of a session whose clock does not advance.
    private func inTurn(_ body: (SessionDeferredWork) -> Void) {
        let turn = SessionDeferredWork { 0 }
        body(turn)
        withExtendedLifetime(turn) {}
    }

    private func bring(_ numbers: Range<Int>) {
        for number in numbers { pool.run { [done] in done.record(number) } }
    }

    @Test func `a busy session collects several evaluations before it wakes a thread`() async {
        inTurn { turn in
            bring(0..<3)
            #expect(turn.hasItems && pool.threadCount == 0 && done.count == 0)
            bring(3..<4)
        }
        #expect(await done.events(atLeast: 4) == [0, 1, 2, 3])
    }

    @Test func `a session without other work wakes a thread for its evaluations`() async {
        inTurn { turn in
            bring(0..<1)
            turn.performIfDue()
            #expect(turn.hasItems && pool.threadCount == 0)
            turn.performAll()
            #expect(!turn.hasItems)
        }
        #expect(await done.events(atLeast: 1) == [0])
    }

    @Test func `even a busy session wakes a thread after a short time`() async {
        let clock = Locked<Int64>(0)
        func bringOne() {
            let turn = SessionDeferredWork { clock.withLock { $0 } }
            bring(0..<1)
            turn.performIfDue()
            #expect(turn.hasItems)
            clock.withLock { $0 += 1_000_000 }
            turn.performIfDue()
            #expect(!turn.hasItems)
        }
        bringOne()
        #expect(await done.events(atLeast: 1) == [0])
    }

    @Test func `an evaluation from another thread needs no turn and also runs deferred evaluations`() async {
        inTurn { turn in
            bring(0..<1)
            let isBrought = Gate()
            DispatchQueue.global().async {
                bring(1..<2)
                isBrought.open()
            }
            isBrought.wait()
            turn.performAll()
        }
        #expect(await done.events(atLeast: 2) == [0, 1])
    }

    @Test func `evaluations that block do not delay the others`() async {
        let gate = Gate()
        for number in 0..<40 {
            pool.run { [done] in
                gate.wait()
                done.record(number)
            }
        }
        pool.run { gate.open() }
        #expect(Set(await done.events(atLeast: 40)) == Set(0..<40))
    }

    @Test func `when an operation ends, the next one in its queue starts on the same thread`() async throws {
        let bench = try OperationBench()
        bench.server.route("/*") { .text($0.path) }
        let workers = ManualWorkers(), queue = workers.makeQueue(width: 1)
        let operations = (0..<5).map { bench.text("/\($0)") }
        try queue.add(operations)
        workers.runAll()
        #expect(workers.count == 0)
        // From here on, the threads of the queue do no work.
        for (number, operation) in operations.enumerated() { #expect(try await operation.value == "/\(number)") }
        // A result is available before its operation has left the queue.
        await queue.drained()
        #expect(queue.counts.finished == 5)
        bench.closeSession()
    }

    @Test func `an operation with overridden methods starts on a thread of its queue`() async throws {
        let bench = try OperationBench(), gate = Gate()
        bench.server.route("/*") { LoopbackAnswer.text($0.path).after(gate) }
        final class Prepared: NetworkDataOperation<String>, @unchecked Sendable {
            // Sendable: the class has no state.

            override func evaluate(result: Data, response: HTTPURLResponse) -> String { "\(result.count)" }
        }
        let workers = ManualWorkers(), queue = workers.makeQueue(width: 1)
        let first = bench.text("/"), second = Prepared(url: bench.server.url("/"), urlSession: bench.session)
        try queue.add([first, second])
        workers.runAll()
        // Without the gate, the response could arrive while the first start still occupies the thread.
        gate.open()
        await first.ended()
        #expect(second.state == .notStarted && workers.count == 1)
        workers.runAll()
        #expect(try await second.value == "1")
        bench.closeSession()
    }

    @Test(.timeLimit(.minutes(2)))
    func `evaluators that wait for requests do not block each other`() async throws {
        let bench = try OperationBench { _ in .text("Hello") }
        do {
            let operations = (0..<200).map { _ in
                bench.watched(
                    NetworkDataOperation<Int>(url: bench.server.url("/"), urlSession: bench.session) { data, _ in
                        let inner = NetworkDataOperation<String>(url: bench.server.url("/"), urlSession: bench.session)
                        return try data.count + inner.startAndWait().count
                    })
            }
            for operation in operations { operation.startAndKeepAlive() }
            for operation in operations { #expect(try await operation.value == 10) }
            await bench.settled()
        }
        try await bench.checkNothingIsLeft()
    }

    @Test func `a waiting thread is replaced immediately, and too many waits are refused`() async {
        let (counts, continues) = (EventRecorder<Int>(), Gate())
        pool.run { [pool, done] in
            // This evaluation occupies the new thread, even if that thread started before the wait.
            pool.run {
                continues.wait()
                done.record(2)
            }
            #expect(pool.threadWillWait())
            counts.record(pool.threadCount)
            continues.open()
            pool.threadDidWait()
            done.record(1)
        }
        #expect(await done.events(atLeast: 2).sorted() == [1, 2])
        #expect(counts.events == [2])
        let other = EvaluationPool()
        var count = 0
        while count < QueueManager.threadLimit, other.threadWillWait() { count += 1 }
        #expect(count == QueueManager.threadLimit - 1)
        for _ in 0..<count { other.threadDidWait() }
    }
}
