// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Paused operations on a chosen queue", .timeLimit(.minutes(1)))
struct PostponedQueueTests {
    private let unpaid = PostponedOperations("until it is paid") { $0.error.status == 402 }
    /// Records how often a request was changed.
    private let change: PostponedOperations.Change = { try $0.with("X-Receipt", ($0.headers["X-Receipt"] ?? "") + "1") }

    private func bench() throws -> OperationBench {
        let bench = try OperationBench { $0["X-Receipt"] == "1" ? .text("Hello") : .status(402) }
        return bench
    }

    /// Returns the given number of paused operations.
    private func postponed(_ count: Int, _ bench: OperationBench) async -> [NetworkDataOperation<String>] {
        let operations = (0..<count).map { number in
            let operation = bench.text()
            operation.name = "\(number)"
            operation.postponed = unpaid
            return operation
        }
        for (index, operation) in operations.enumerated() {
            operation.start()
            await until { [unpaid] in unpaid.count == index + 1 }
        }
        return operations
    }

    @Test("Operations that a full queue rejects stay paused and unchanged, and can run later")
    func fullQueue() async throws {
        let bench = try bench()
        do {
            let operations = await postponed(4, bench), queue = QueueManager("night", width: 1)
            queue.isSuspended = true
            queue.capacity = 2
            let error = #expect(throws: QueueError.self) { try unpaid.runAll(on: queue, changing: change) }
            #expect(error?.code == .full)
            #expect(unpaid.operations.map(\.name) == ["2", "3"])
            #expect(throws: QueueError.self) { try unpaid.run(operations[3], on: queue, changing: change) }
            #expect(unpaid.operations.map(\.name) == ["2", "3"])
            queue.capacity = nil
            try unpaid.runAll(on: queue, changing: change)
            #expect(unpaid.count == 0)
            queue.isSuspended = false
            for operation in operations { #expect(try await operation.value == "Hello") }
            await queue.drained()
        }
        try await bench.checkNothingIsLeft()
    }

    @Test("A paused operation can be run again on its own queue")
    func ownQueue() async throws {
        let bench = try bench(), queue = QueueManager("only", width: 1)
        let operations = (0..<3).map { _ in bench.text() }
        for operation in operations { operation.postponed = unpaid }
        try queue.add(operations)
        await until { [unpaid] in unpaid.count == 3 }
        try unpaid.runAll(on: queue, changing: change)
        for operation in operations { #expect(try await operation.value == "Hello") }
        await queue.drained()
        #expect(queue.counts.finished == 3)
    }

    @Test("Operations of two queues that run again on each other's queue do not block each other")
    func crossed() async throws {
        let bench = try bench(), queues = [QueueManager("one", width: 1), QueueManager("two", width: 1)]
        let operations = (0..<20).map { _ in bench.text() }
        for (index, operation) in operations.enumerated() {
            operation.postponed = unpaid
            try queues[index % 2].add(operation)
        }
        await until { [unpaid] in unpaid.count == 20 }
        for (index, operation) in operations.enumerated() {
            #expect(try unpaid.run(operation, on: queues[1 - index % 2], changing: change))
        }
        for operation in operations { #expect(try await operation.value == "Hello") }
        for queue in queues { await queue.drained() }
        #expect(queues.map(\.counts.finished) == [20, 20])
    }

    @Test("An operation that is paused again frees its slot in the chosen queue")
    func putAsideAgain() async throws {
        let bench = try bench()
        do {
            let operations = await postponed(3, bench), queue = QueueManager("night", width: 1)
            for _ in 0..<3 {
                try unpaid.runAll(on: queue)
                await until { [unpaid] in unpaid.count == 3 }
                await queue.drained()
            }
            try unpaid.runAll(on: queue, changing: change)
            for operation in operations { #expect(try await operation.value == "Hello") }
            await queue.drained()
            #expect(queue.counts.finished == 12)
        }
        try await bench.checkNothingIsLeft()
    }

    @Test("An operation that waits for a token leaves its slot in the chosen queue to the refresh")
    func refreshBeside() async throws {
        let bench = try TokenBench(), queue = QueueManager("night", width: 1)
        bench.server.route("GET", "/token") { _ in .text("new") }
        bench.server.route("GET", "/") { request in
            guard request["X-Receipt"] == "1" else { return .status(402) }
            return request["Authorization"] == "Bearer new" ? .text("Hello") : .status(401)
        }
        let authenticator = bench.authenticator(refresh: {
            let operation = bench.bench.text("/token")
            try queue.add(operation)
            return try await operation.value
        })
        let operations = bench.operations(3, authenticator)
        for operation in operations {
            operation.postponed = unpaid
            operation.start()
        }
        await until { [unpaid] in unpaid.count == 3 }
        try unpaid.runAll(on: queue, changing: change)
        for operation in operations { #expect(try await operation.value == "Hello") }
        await queue.drained()
        #expect(bench.asked.events == ["old"])
    }

    @Test("A single paused operation can be failed")
    func single() async throws {
        let bench = try bench()
        let operations = await postponed(2, bench)
        #expect(unpaid.fail(operations[0]))
        await operations[0].ended()
        #expect(operations[0].outcome?.error?.status == 402)
        #expect(!unpaid.fail(operations[0]))
        #expect(unpaid.count == 1 && operations[1].outcome == nil)
        unpaid.cancelAll()
        await operations[1].ended()
    }
}
