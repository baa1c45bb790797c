// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Running or failing single operations of a realm", .timeLimit(.minutes(1)))
struct RealmByHandTests {
    private let bench: TokenBench
    private let authenticator: Authenticator<String>
    private let refreshes = Gate()
    private let change: PostponedOperations.Change = { try $0.with("Authorization", "Bearer new") }

    init() throws {
        let bench = try TokenBench(), refreshes = refreshes
        self.bench = bench
        authenticator = bench.authenticator(refresh: {
            await refreshes.passage()
            return bench.good.value
        })
    }

    /// Returns waiting operations in this order.
    ///
    /// The first operation was rejected, and the others were never sent.
    private func postponed(_ count: Int) async -> [NetworkDataOperation<String>] {
        let operations = bench.operations(count, authenticator)
        for (index, operation) in operations.enumerated() {
            operation.name = "\(index)"
            operation.start()
            await until { [authenticator] in
                authenticator.postponedCount == index + 1 && operation.waitReason?.kind == .credential
            }
        }
        return operations
    }

    @Test
    func `realms and lists that are set after the start have no effect, so no operation waits forever`() async throws {
        let bench = try TokenBench(), open = Gate()
        let authenticator = bench.authenticator(refresh: open.opening("new"))
        let operation = bench.operation(authenticator)
        operation.start()
        await until { authenticator.postponedCount == 1 }
        operation.realms = []
        operation.postponed = PostponedOperations { _ in true }
        #expect(operation.realms.count == 1 && operation.postponed == nil)
        operation.cancel()
        #expect(authenticator.postponedCount == 0)
        open.open()
    }

    @Test func `a rejected or a waiting operation can be run alone with a changed request`() async throws {
        do {
            let operations = await postponed(4)
            for index in [2, 0] {
                #expect(authenticator.run(operations[index], changing: change))
                #expect(try await operations[index].value == "Hello")
            }
            #expect(authenticator.postponed.map(\.name) == ["1", "3"])
            #expect(!authenticator.run(operations[0], changing: change))
            #expect(operations[0].attemptCount == 2 && operations[2].attemptCount == 1)
            #expect(operations[0].failedAttempts.map(\.putAside?.kind) == [.credential])
            refreshes.open()
            for operation in operations { #expect(try await operation.value == "Hello") }
        }
        #expect(bench.server.counts.heads == 5 && authenticator.postponedCount == 0)
        try await bench.bench.checkNothingIsLeft()
    }

    @Test func `an operation that is run explicitly gets no token, and fails if it is rejected`() async throws {
        let operations = await postponed(2)
        #expect(authenticator.run(operations[1]) { try $0.with("Authorization", "Bearer mine") })
        await operations[1].ended()
        #expect(operations[1].outcome?.error?.status == 401)
        #expect(bench.server.requests.last?["Authorization"] == "Bearer mine")
        // The refresh begins in its own task, which a busy machine may start after the request ends.
        await until { [bench] in bench.asked.count > 0 }
        #expect(bench.asked.count == 1 && authenticator.postponed.map(\.name) == ["0"])
        authenticator.failPostponed()
        await operations[0].ended()
    }

    @Test func `a single waiting operation can be failed with a given reason`() async throws {
        let operations = await postponed(3)
        for index in [0, 2] {
            #expect(authenticator.fail(operations[index], because: Refusal()))
            await operations[index].ended()
            let error = operations[index].outcome?.error
            #expect(error?.code == .refreshFailed && error?.cause is Refusal)
        }
        #expect(!authenticator.fail(operations[0]))
        #expect(authenticator.postponed.map(\.name) == ["1"])
        refreshes.open()
        #expect(try await operations[1].value == "Hello")
    }
}
