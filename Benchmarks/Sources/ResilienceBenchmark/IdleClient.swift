// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import NetworkBenchmarkSupport
import OperationCore
import OperationExporters
import OperationNetworking
import OperationTestKit

/// The policies that are set on each operation.
enum IdlePolicies: String, CaseIterable {
    case none = "nothing"
    case retry = "retry"
    case offline = "offline policy"
    case authentication = "authentication"
    case all = "all three"
    /// A meter without policies.
    case meter = "a meter"
    case trace = "a timeline"

    var observes: Bool { [.meter, .trace].contains(self) }
}

/// A client that sends the same request repeatedly, sixteen at a time, with an available network and a valid
/// credential.
struct IdleClient {
    let policies: IdlePolicies
    private let session = StubSession()
    private let request: NetworkRequest
    private let callbacks = DispatchQueue(label: "callbacks")
    private let meter = NetworkMeter()
    private let trace = NetworkTrace()
    private let offline = OfflinePolicy(waiting: OfflineWaiting(monitor: ManualConnectivity(.satisfied)))
    private let authenticator = Authenticator("token") { token, request in
        try request.with("Authorization", token)
    } refresh: { _ in
        "token"
    }

    /// Creates a client, or returns nil if the request cannot be created.
    init?(_ policies: IdlePolicies) {
        guard let url = URL(string: "http://example.com/"), let request = try? NetworkRequest(url: url) else {
            return nil
        }
        self.policies = policies
        self.request = request
        session.route("GET", "/") { _ in .text("Hello") }
    }

    /// Sends a number of requests, waits for the last one, and returns the number of failures.
    func send(_ count: Int) -> Int {
        let countdown = Countdown(count)
        for _ in 0..<16 { begin(countdown) }
        return countdown.wait()
    }

    /// Begins a request, whose end begins the next request.
    private func begin(_ countdown: Countdown) {
        guard countdown.takeOne() else { return }
        let operation = NetworkDataOperation(request: request, urlSession: session) { data, _ in data.count }
        operation.callbackQueue = callbacks
        if [.retry, .all].contains(policies) { operation.retry = .standard }
        if [.offline, .all].contains(policies) { operation.offline = offline }
        if [.authentication, .all].contains(policies) { operation.authenticate(by: authenticator) }
        if policies == .meter { operation.addNetworkObserver(meter) }
        if policies == .trace { operation.addNetworkObserver(trace) }
        operation.successHandler = { [self] count in
            begin(countdown)
            countdown.end(isGood: count == 5)
        }
        operation.failureHandler = { [self] _ in
            begin(countdown)
            countdown.end(isGood: false)
        }
        operation.startAndKeepAlive()
    }
}
