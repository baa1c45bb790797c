// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Operations that are put aside by hand", .timeLimit(.minutes(1)))
struct PostponedOperationsTests {
    private let unpaid = PostponedOperations("until it is paid") { $0.error.status == 402 }

    private func bench() throws -> OperationBench {
        let bench = try OperationBench()
        bench.server.route("GET", "/") { $0["X-Receipt"] == "1" ? .text("Hello") : .status(402) }
        bench.server.route("GET", "/free") { _ in .text("free") }
        return bench
    }

    private func operations(_ count: Int, _ bench: OperationBench) -> [NetworkDataOperation<String>] {
        (0..<count).map { number in
            let operation = bench.text()
            operation.name = "\(number)"
            operation.postponed = unpaid
            return operation
        }
    }

    @Test("Put aside, they leave their places; run again and changed, they succeed, in the order in which they came")
    func runAgain() async throws {
        let bench = try bench()
        do {
            let queue = QueueManager("shop", width: 1)
            let operations = operations(4, bench), free = bench.text("/free")
            operations[0].retry = .standard
            try queue.add(operations)
            try queue.add(free)
            #expect(try await free.value == "free")
            await until { unpaid.count == 4 }
            #expect(unpaid.operations.map(\.name) == ["0", "1", "2", "3"])
            #expect(queue.explain(operations[1]).description == "1 runs in queue shop: postponed until it is paid.")
            #expect(try unpaid.run(operations[3]) { try $0.with("X-Receipt", "1") })
            #expect(try await operations[3].value == "Hello")
            #expect(try !unpaid.run(operations[3]))
            try unpaid.runAll { try $0.with("X-Receipt", "1") }
            for operation in operations { #expect(try await operation.value == "Hello") }
            #expect(operations.allSatisfy { $0.attemptCount == 2 })
            #expect(unpaid.count == 0)
        }
        try await bench.checkNothingIsLeft()
    }

    @Test("On a queue of choice each goes on when its turn comes there, and counts there until it ended")
    func otherQueue() async throws {
        let bench = try bench()
        let operations = operations(5, bench), queue = QueueManager("night", width: 1)
        for operation in operations { operation.start() }
        await until { unpaid.count == 5 }
        queue.isSuspended = true
        try unpaid.runAll(on: queue) { try $0.with("X-Receipt", "1") }
        #expect(unpaid.count == 0)
        #expect(operations.allSatisfy { $0.outcome == nil })
        #expect(bench.server.counts.heads == 5)
        queue.isSuspended = false
        for operation in operations { #expect(try await operation.value == "Hello") }
        await queue.drained()
        #expect(queue.counts.finished == 5)
        // One that is cancelled there before its turn is cancelled.
        let last = self.operations(1, bench)[0]
        last.start()
        await until { unpaid.count == 1 }
        queue.isSuspended = true
        try unpaid.runAll(on: queue)
        queue.cancelAll()
        await last.ended()
        #expect(last.isCancelled)
    }

    @Test("They can be cancelled, let fail with what made them come, and are put aside again if the rule says so")
    func ends() async throws {
        let bench = try bench()
        do {
            var operations = operations(3, bench)
            for operation in operations { operation.start() }
            let first = operations[0]
            // It is in the list before it knows its place there.
            await until { unpaid.count == 3 && first.networkAttempts.isResting }
            operations[0].cancel()
            #expect(operations[0].isFinished && unpaid.count == 2)
            try unpaid.runAll()
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

    @Test("All operations of a service use the list of its base")
    func service() async throws {
        let bench = try bench()
        bench.server.route("GET", "/album") { $0["X-Receipt"] == "1" ? .json("[1]") : .status(402) }
        var base = NetworkBase(bench.server.url("/"))
        base.session = bench.session
        base.postponed = unpaid
        let operation = base.get("album", as: [Int].self)
        operation.start()
        await until { unpaid.count == 1 }
        try unpaid.runAll { try $0.with("X-Receipt", "1") }
        #expect(try await operation.value == [1])
    }
}
