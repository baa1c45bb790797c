// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import NetworkBenchmarkSupport
import OperationCore
import OperationExporters
import OperationNetworking
import OperationTestKit

/// What is set on each operation.
enum IdlePolicies: String, CaseIterable {
    case none = "nothing"
    case retry = "retry"
    case offline = "offline policy"
    case authentication = "authentication"
    case all = "all three"
    /// No policies, but what sees to it that something is known.
    case meter = "a meter"
    case trace = "a timeline"

    var observes: Bool { [.meter, .trace].contains(self) }
}

/// Asks for something again and again, sixteen requests at a time, on a network that is there and with a credential
/// that is valid.
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

    /// nil if there is no such request.
    init?(_ policies: IdlePolicies) {
        guard let url = URL(string: "http://example.com/"), let request = try? NetworkRequest(url: url) else {
            return nil
        }
        self.policies = policies
        self.request = request
        session.route("GET", "/") { _ in .text("Hello") }
    }

    /// Sends so many, and waits for the last; gives the number of those that failed.
    func send(_ count: Int) -> Int {
        let countdown = Countdown(count)
        for _ in 0..<16 { begin(countdown) }
        return countdown.wait()
    }

    /// Each that ends begins the next.
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
