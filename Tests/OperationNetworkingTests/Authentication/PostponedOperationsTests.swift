// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Paused operations", .timeLimit(.minutes(1)))
struct PostponedOperationsTests {
    private let unpaid = PostponedOperations("until it is paid") { $0.error.status == 402 }

    private let bench: OperationBench

    init() throws {
        bench = try OperationBench { $0["X-Receipt"] == "1" ? .text("Hello") : .status(402) }
        bench.server.route("GET", "/free") { _ in .text("free") }
    }

    private func operations(_ count: Int, _ bench: OperationBench) -> [NetworkDataOperation<String>] {
        (0..<count).map { number in
            let operation = bench.text().named("\(number)")
            operation.postponed = unpaid
            return operation
        }
    }

    @Test("Paused operations free their slots, keep their order, and succeed when run again with a change")
    func runAgain() async throws {
        do {
            let queue = QueueManager("shop", width: 1)
            let operations = operations(4, bench), free = bench.text("/free")
            operations[0].retry = .standard
            try queue.add(operations)
            try queue.add(free)
            #expect(try await free.value == "free")
            await until { unpaid.count == 4 }
            #expect(unpaid.operations.map(\.name) == ["0", "1", "2", "3"])
            #expect(queue.explain(operations[1]) == "1 runs in queue shop: paused until it is paid.")
            #expect(unpaid.run(operations[3]) { try $0.with("X-Receipt", "1") })
            #expect(try await operations[3].value == "Hello")
            #expect(!unpaid.run(operations[3]))
            unpaid.runAll { try $0.with("X-Receipt", "1") }
            for operation in operations { #expect(try await operation.value == "Hello") }
            #expect(operations.allSatisfy { $0.attemptCount == 2 })
            #expect(unpaid.count == 0)
        }
        try await bench.checkNothingIsLeft()
    }

    @Test
    func `operations that run again wait for a slot in their own queue, also if they are paused again`() async throws {
        let queue = QueueManager("only", width: 1)
        let operations = operations(3, bench)
        try queue.add(operations)
        await until { unpaid.count == 3 }
        unpaid.runAll()
        await until { unpaid.count == 3 && bench.server.counts.heads == 6 }
        unpaid.runAll { try $0.with("X-Receipt", "1") }
        for operation in operations { #expect(try await operation.value == "Hello") }
        await queue.drained()
        #expect(queue.counts.finished == 3)
    }

    @Test func `a single paused operation can be failed`() async throws {
        let operations = operations(2, bench)
        for operation in operations { operation.start() }
        await until { unpaid.count == 2 }
        #expect(unpaid.fail(operations[0]))
        await operations[0].ended()
        #expect(operations[0].outcome?.error?.status == 402)
        #expect(!unpaid.fail(operations[0]))
        #expect(unpaid.count == 1 && operations[1].outcome == nil)
        unpaid.cancelAll()
        await operations[1].ended()
    }

    @Test func `paused operations can be canceled, failed with their original error, or paused again`() async throws {
        do {
            var operations = operations(3, bench)
            for operation in operations { operation.start() }
            let first = operations[0]
            // The operation is in the list before it has recorded its entry.
            await until { unpaid.count == 3 && first.networkAttempts.isResting }
            operations[0].cancel()
            #expect(operations[0].isFinished && unpaid.count == 2)
            unpaid.runAll()
            await until { unpaid.count == 2 }
            #expect(bench.server.counts.heads == 5)
            unpaid.failAll()
            for operation in operations.dropFirst() {
                await operation.ended()
                #expect(operation.outcome?.error?.status == 402)
                #expect(operation.outcome?.error?.attempts.map(\.putAside?.kind) == [.release, .release])
            }
            operations = self.operations(2, bench)
            for operation in operations { operation.start() }
            await until { unpaid.count == 2 }
            unpaid.cancelAll()
            #expect(operations.allSatisfy { $0.isCancelled } && unpaid.count == 0)
        }
        try await bench.checkNothingIsLeft()
    }

    @Test func `an operation whose network task is canceled is canceled and not paused`() async throws {
        bench.server.route("GET", "/stalled") { _ in .silence }
        let list = PostponedOperations { _ in true }, operation = bench.text("/stalled")
        operation.postponed = list
        await bench.server.isReached(by: operation)
        operation.networkTask?.cancel()
        await until { operation.outcome != nil || list.count > 0 }
        #expect(operation.outcome?.cancellationCause?.code == .networkTaskCancelled)
        #expect(list.count == 0)
    }

    @Test func `all operations of a base use its list of paused operations`() async throws {
        bench.server.route("GET", "/album") { $0["X-Receipt"] == "1" ? .json("[1]") : .status(402) }
        var base = NetworkBase(bench.server.url("/"))
        base.session = bench.session
        base.postponed = unpaid
        let operation = base.get("album", as: [Int].self)
        operation.start()
        await until { unpaid.count == 1 }
        unpaid.runAll { try $0.with("X-Receipt", "1") }
        #expect(try await operation.value == [1])
    }
}
