// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Refreshes while the network is lost", .timeLimit(.minutes(1)))
struct RefreshOfflineTests {
    @Test
    func `if a refresh finds no network, its waiting operations wait for the network and then succeed`() async throws {
        let bench = try TokenBench(), offline = try OfflineBench(), refreshes = Gate()
        let network = offline.network
        network.write(.satisfied)
        let authenticator = bench.authenticator(refresh: {
            await refreshes.passage()
            if network.connectivity.isOffline { throw URLError(.notConnectedToInternet) }
            return "new"
        })
        do {
            let operations = bench.operations(3, authenticator)
            for operation in operations { operation.offline = offline.policy { $0.beforeSending = .send } }
            // One operation is rejected, and the other two wait.
            operations[0].start()
            await until { authenticator.postponedCount == 1 }
            for operation in operations.dropFirst() { operation.start() }
            await until { authenticator.postponedCount == 3 }
            network.write(.unsatisfied)
            refreshes.open()
            await offline.waits(3)
            await until { operations.allSatisfy { $0.waitReason?.kind == .network } }
            #expect(authenticator.postponedCount == 0)
            // The network returns before the pause after a failure ends.
            offline.comeBack()
            for _ in operations { offline.clock.advance(by: .seconds(1)) }
            for operation in operations { #expect(try await operation.value == "Hello") }
            #expect(bench.asked.count == 2)
            #expect(bench.server.counts.heads == 4)
        }
        try await bench.bench.checkNothingIsLeft()
    }

    @Test("An operation that was suspended beyond its offline limit starts another refresh without the pause")
    func suspendedInOutage() async throws {
        let bench = try TokenBench(), offline = try OfflineBench(), network = offline.network
        let authenticator = bench.authenticator(refresh: {
            if network.connectivity.isOffline { throw URLError(.notConnectedToInternet) }
            return "new"
        })
        do {
            let operation = bench.operation(authenticator)
            operation.offline = offline.policy {
                $0.beforeSending = .send
                $0.longestWait = .seconds(60)
            }
            await offline.startsToWait(operation)
            #expect(bench.asked.count == 1)
            #expect(operation.suspend())
            offline.clock.advance(by: .seconds(3_600))
            #expect(offline.offlineWaiting.waitingCount == 0)
            network.write(.satisfied)
            #expect(operation.resume())
            // No time has passed on the clock of the realm.
            #expect(try await operation.value == "Hello")
            #expect(bench.asked.count == 2)
        }
        try await bench.bench.checkNothingIsLeft()
    }

    @Test("While the network is available, a failed refresh fails the operation despite its offline policy")
    func networkIsThere() async throws {
        let bench = try TokenBench(), offline = try OfflineBench()
        offline.network.write(.satisfied)
        let authenticator = bench.authenticator(refresh: { throw URLError(.notConnectedToInternet) })
        let operation = bench.operation(authenticator)
        operation.offline = offline.policy()
        let error = await failure(of: operation)
        #expect(error?.code == .refreshFailed && error?.cause is URLError)
        #expect(offline.offlineWaiting.waitingCount == 0)
    }
}
