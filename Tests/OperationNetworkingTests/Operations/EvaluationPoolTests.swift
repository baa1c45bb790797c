// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Where results are made, and when a thread is woken for that.
@Suite("The threads that make results", .timeLimit(.minutes(1)))
struct EvaluationPoolTests {
    private let pool = EvaluationPool()
    private let done = EventRecorder<Int>()

    /// Does something on a thread of a session, whose clock stands still.
    private func inTurn(_ body: (SessionTurn) -> Void) {
        let turn = SessionTurn { 0 }
        body(turn)
        withExtendedLifetime(turn) {}
    }

    private func bring(_ numbers: Range<Int>) {
        for number in numbers { pool.run { [done] in done.record(number) } }
    }

    @Test("A session that is busy brings a few before a thread is woken")
    func few() async {
        inTurn { turn in
            bring(0..<3)
            #expect(turn.isOwing && pool.threadCount == 0 && done.count == 0)
            bring(3..<4)
        }
        #expect(await done.events(atLeast: 4) == [0, 1, 2, 3])
    }

    @Test("One that has nothing else to do wakes a thread for what it brought")
    func nothingElse() async {
        inTurn { turn in
            bring(0..<1)
            turn.settleIfDue()
            #expect(turn.isOwing && pool.threadCount == 0)
            turn.settle()
            #expect(!turn.isOwing)
        }
        #expect(await done.events(atLeast: 1) == [0])
    }

    @Test("However busy it is, a thread is woken before long")
    func longAfter() async {
        let clock = Locked<Int64>(0)
        func bringOne() {
            let turn = SessionTurn { clock.withLock { $0 } }
            bring(0..<1)
            turn.settleIfDue()
            #expect(turn.isOwing)
            clock.withLock { $0 += 1_000_000 }
            turn.settleIfDue()
            #expect(!turn.isOwing)
        }
        bringOne()
        #expect(await done.events(atLeast: 1) == [0])
    }

    @Test("What others bring needs no turn, and takes along what was put off")
    func others() async {
        inTurn { turn in
            bring(0..<1)
            let isBrought = Gate()
            DispatchQueue.global().async {
                bring(1..<2)
                isBrought.open()
            }
            isBrought.wait()
            turn.settle()
        }
        #expect(await done.events(atLeast: 2) == [0, 1])
    }

    @Test("Evaluations that block do not hold up the others")
    func blocked() async {
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

    @Test("Where one operation ends the next of its queue begins, without another thread")
    func next() async throws {
        let bench = try OperationBench()
        bench.server.route("/*") { .text($0.path) }
        let workers = ManualWorkers(), queue = workers.makeQueue(width: 1)
        let operations = (0..<5).map { bench.text("/\($0)") }
        try queue.add(operations)
        workers.runAll()
        #expect(workers.count == 0)
        // No thread of the queue does anything from here on.
        for (number, operation) in operations.enumerated() { #expect(try await operation.value == "/\(number)") }
        // A result is told before its operation has left the queue.
        await queue.drained()
        #expect(queue.counts.finished == 5)
        bench.closeSession()
    }

    @Test("An operation whose start may run code of the user's begins on a thread of its queue")
    func subclass() async throws {
        let bench = try OperationBench(), gate = Gate()
        bench.server.route("/*") { LoopbackAnswer.text($0.path).after(gate) }
        final class Prepared: NetworkDataOperation<String>, @unchecked Sendable {
            // Sendable: it has no state.

            override func evaluate(result: Data, response: HTTPURLResponse) -> String { "\(result.count)" }
        }
        let workers = ManualWorkers(), queue = workers.makeQueue(width: 1)
        let first = bench.text("/"), second = Prepared(url: bench.server.url("/"), urlSession: bench.session)
        try queue.add([first, second])
        workers.runAll()
        // Else the answer might find the thread in its seat still.
        gate.open()
        await first.ended()
        #expect(second.state == .notStarted && workers.count == 1)
        workers.runAll()
        #expect(try await second.value == "1")
        bench.closeSession()
    }

    @Test("Evaluators that wait for requests do not keep each other from being made", .timeLimit(.minutes(2)))
    func waiting() async throws {
        let bench = try OperationBench()
        bench.server.route("GET", "/") { _ in .text("Hello") }
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

    @Test("A thread that waits is replaced at once, and too many waits are refused")
    func replaced() async {
        let (counts, goesOn) = (EventRecorder<Int>(), Gate())
        pool.run { [pool, done] in
            // It keeps the thread that comes, even if that came before this one waits.
            pool.run {
                goesOn.wait()
                done.record(2)
            }
            #expect(pool.threadWillWait())
            counts.record(pool.threadCount)
            goesOn.open()
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
