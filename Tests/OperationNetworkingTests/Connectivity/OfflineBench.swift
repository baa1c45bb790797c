// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// A real server, and a network and a clock that the test controls.
struct OfflineBench: Sendable {
    let bench: OperationBench
    let network = ManualConnectivity(.unsatisfied)
    let clock = ManualClock()
    let offlineWaiting: OfflineWaiting

    init(_ options: LoopbackServer.Options = .init(), capacity: Int = 10_000, perSecond: Double = 10) throws {
        bench = try OperationBench(options)
        offlineWaiting = OfflineWaiting(
            monitor: network, capacity: capacity, perSecond: perSecond, settling: .seconds(1),
            clock: clock, chance: { 0.5 })
        bench.server.route("/") { request in .text("Hello \(request.number)") }
    }

    /// The default policy, which here also applies to requests to this machine.
    func policy(_ change: (inout OfflinePolicy) -> Void = { _ in }) -> OfflinePolicy {
        var policy = OfflinePolicy(waiting: offlineWaiting)
        policy.concerns = { _ in true }
        change(&policy)
        return policy
    }

    func operation(
        _ method: String = "GET", body: RequestBody = .none, at url: URL? = nil,
        _ change: (inout OfflinePolicy) -> Void = { _ in }
    ) -> NetworkUploadOperation<String> {
        let operation = bench.watched(
            NetworkUploadOperation(
                url: url ?? bench.server.url("/"), method: method, body: body, urlSession: bench.session
            ) { data, _ in String(decoding: data, as: UTF8.self) })
        operation.clock = clock
        operation.offline = policy(change)
        return operation
    }

    /// Waits until this many operations wait for the network, and the timer for their limit is set.
    func waits(_ count: Int) async {
        await until { offlineWaiting.waitingCount == count && (count == 0 || clock.nextDue != nil) }
    }

    /// Waits until the operation waits for the network.
    ///
    /// Its timer may be set a little later.
    func waits(_ operation: some AnyNetworkOperation) async {
        await until { offlineWaiting.waitingCount == 1 && operation.waitReason?.kind == .network }
    }

    /// Starts the operation, and waits until it waits for the network.
    func startsToWait(_ operation: some AnyNetworkOperation) async {
        operation.start()
        await waits(operation)
    }

    /// Makes the network disappear with each request, or only with the first one if there is a later response.
    func losesNetwork(_ method: String = "GET", then later: String? = nil) {
        bench.server.route(method, "/") { [network] request in
            if request.number > 0, let later { return .text(later) }
            network.write(.unsatisfied)
            return .reset
        }
    }

    /// The network returns, and the first operation resumes.
    func comeBack() {
        network.write(.satisfied)
        clock.advance(by: .milliseconds(1_500))
    }

    /// Checks that no operation and no timer is left.
    func checkNothingIsLeft() async throws {
        try await bench.checkNothingIsLeft()
        #expect(offlineWaiting.waitingCount == 0 && clock.pendingCount == 0)
    }
}
