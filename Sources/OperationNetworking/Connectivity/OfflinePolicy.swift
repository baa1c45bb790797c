// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

/// A policy that makes operations wait while the device is offline and resumes them when the network returns.
///
/// ```swift
/// func albums(at url: URL) -> NetworkDataOperation<Data> {
///     let operation = NetworkDataOperation(url: url) { data, _ in data }
///     operation.offline = .standard
///     return operation
/// }
/// ```
///
/// Without a policy, an operation sends its request regardless of the state of the network. To set a policy for all
/// operations of a service, set ``NetworkBase/offline``.
///
/// A wait does not count as an attempt. An attempt that fails while the network is unavailable does not count toward
/// the maximum number of attempts either.
public struct OfflinePolicy: Sendable {
    /// The behavior for a request that is ready to send while the network is unavailable.
    ///
    /// More cases may be added.
    public enum BeforeSending: Sendable, Hashable {
        /// The operation sends the request anyway.
        case send
        /// The operation waits for the network.
        case wait
        /// The operation fails immediately with the code `offline`.
        case fail
    }

    /// The queue in which operations wait, including its connectivity monitor.
    public var waiting: OfflineWaiting
    /// The behavior for a request that is ready to send while the network is unavailable.
    ///
    /// The default is ``OfflinePolicy/BeforeSending/wait``.
    public var beforeSending = BeforeSending.wait
    /// The rules for the failures after which an operation waits if the network is unavailable.
    ///
    /// If the array is empty, the operation does not wait after any failure. The default is ``OfflineRule/standard``.
    public var rules = OfflineRule.standard
    /// The HTTP methods of requests that a server can safely process twice.
    ///
    /// If the value is `nil`, every method counts as safe. A request with another method waits only if no part of it
    /// was sent, or if it has an `Idempotency-Key`. The default is the same as in ``RetryPolicy/standard``.
    public var methods = RetryPolicy.standard.methods
    /// The maximum total time for which an operation waits for the network.
    ///
    /// The default is 5 minutes. If the value is `nil`, the time is not limited. The time is measured on the clock of
    /// ``waiting``. When the time has elapsed, the operation fails with the code `offlineTooLong`.
    ///
    /// The time that an operation waits for its turn after the network returns does not count. A wait that reaches the
    /// limit while the operation is suspended does not count either.
    public var longestWait: Duration? = .seconds(300)
    /// The maximum number of times that an operation waits.
    ///
    /// The default is 10. If the operation would have to wait once more, it fails with the code `offlineTooOften`.
    public var mostWaits = 10
    /// A closure that returns whether a request needs the network.
    ///
    /// The default closure returns `false` for requests to this device, and `true` for all other requests.
    public var concerns: @Sendable (NetworkRequest) -> Bool = { !OfflinePolicy.staysHere($0) }

    /// Creates the standard policy.
    ///
    /// - Parameter waiting: The queue in which operations wait. The default is ``OfflineWaiting/shared``.
    public init(waiting: OfflineWaiting = .shared) {
        self.waiting = waiting
    }

    /// A policy that makes operations wait for the network for up to five minutes.
    public static let standard = OfflinePolicy()

    /// A policy that makes operations fail immediately with the code `offline` while the network is unavailable.
    ///
    /// Use this policy if a user waits for the result and can try again.
    public static let failFast: OfflinePolicy = {
        var policy = OfflinePolicy()
        policy.beforeSending = .fail
        policy.rules = []
        return policy
    }()

    /// Returns a Boolean value that indicates whether a request goes to this device itself and needs no network.
    public static func staysHere(_ request: NetworkRequest) -> Bool {
        let host = request.origin.place.host
        if host == "localhost" || host.hasSuffix(".localhost") { return true }
        return host == "::1" || host.hasPrefix("127.") && HostName.isIPv4(host)
    }

    /// Returns the rule for a failure, if waiting can help and the request can safely be sent again.
    package func rule(for error: NetworkError, of request: NetworkRequest) -> OfflineRule? {
        // If a credential refresh failed, the request for which it was needed was rejected or was not sent.
        let refresh = error.codeOfRefresh
        guard let rule = rules.first(where: { $0.code == refresh ?? error.code }) else { return nil }
        let isHarmless =
            refresh != nil || error.isUnsent || methods?.contains(request.method) ?? true
            || request.idempotencyKey != nil
        return isHarmless ? rule : nil
    }
}

/// A rule that identifies one kind of failure that an unavailable network can cause.
public struct OfflineRule: Sendable, Hashable {
    /// The error code that the rule matches.
    public let code: NetworkError.Code
    /// A sentence that explains how the failure relates to the network.
    public let reason: String

    /// Creates a rule that matches an error code.
    public static func failure(_ code: NetworkError.Code, because reason: String) -> OfflineRule {
        OfflineRule(code: code, reason: reason)
    }
}

// The standard rules. Other failures have other causes, even while the network is unavailable: responses of a server,
// certificates, invalid requests, and bodies that cannot be read.
extension OfflineRule {
    /// The failures after which an operation waits for the network by default.
    public static let standard: [OfflineRule] = [
        .failure(.notConnected, because: "The system has no route to the host."),
        .failure(.cannotFindHost, because: "A DNS lookup needs the network."),
        .failure(.cannotConnect, because: "A connection needs the network."),
        .failure(.timedOut, because: "The request or its response was lost with the network."),
        .failure(.connectionLost, because: "The connection broke when the network became unavailable."),
        .failure(.truncatedBody, because: "The response ended when the network became unavailable."),
    ]
}

/// A pace at which operations resume when the network returns, so that they do not overload the network.
public struct OfflineResumePace: Sendable, Hashable {
    /// The average number of operations that resume each second.
    ///
    /// The default is 20. The minimum is 0.001, which is one operation in 1,000 seconds.
    public var perSecond: Double
    /// The minimum time for which the network must be available before the first operation resumes.
    ///
    /// The default is half a second. The actual time is a random value between this value and twice this value. If the
    /// network is lost again within that time, no operation resumes. The randomization helps if the network returns for
    /// many devices at the same moment.
    public var settling: Duration

    /// Creates a pace.
    public init(perSecond: Double = 20, settling: Duration = .milliseconds(500)) {
        self.perSecond = perSecond
        self.settling = settling
    }

    /// A pace of 20 operations per second, which starts between half a second and one second after the network returns.
    public static let standard = OfflineResumePace()

    private var rate: Double { perSecond > 0.001 ? min(perSecond, 1e6) : 0.001 }

    /// The number of operations that resume together.
    ///
    /// The number is more than one if the interval between operations would be shorter than the resolution of timers.
    var batch: Int { max(Int(rate / 100), 1) }

    /// Returns the interval between operations, which the random number (0 to 1) shortens or extends by up to a half.
    func step(_ chance: Double) -> Duration {
        .nanoseconds(Int64(Double(batch) / rate * (0.5 + chance.asChance) * 1e9))
    }

    /// Returns the time from the return of the network until the first operation resumes.
    func delay(_ chance: Double) -> Duration { max(settling, .zero).clamped * (1 + chance.asChance) }
}

// Set these properties before the operation starts.
extension AnyNetworkOperation {
    /// The policy that applies while the network is unavailable.
    ///
    /// The default is `nil`, which ignores the state of the network. If you never set this property, the operation uses
    /// the policy of its group, if the group sets one.
    public var offline: OfflinePolicy? {
        get { networkAttempts.policy(of: OfflineAgent.self)?.policy }
        set {
            guard maySet("offline policy") else { return }
            networkAttempts.markAsSet(.offline)
            networkAttempts.set(newValue)
        }
    }

    /// A closure that the operation calls on its callback queue when it begins to wait for the network, for example to
    /// show a banner.
    ///
    /// The operation calls this closure once for each loss of the network during which it waits. The wait can begin
    /// before a request is sent or after a request failed. The operation never calls the closure after it ends. The
    /// ``AnyNetworkOperation/offline`` property determines whether the operation waits at all. The operation releases
    /// the closure when it ends. Its handlers for success, failure and cancellation report the end as usual.
    public var offlineHandler: (@Sendable () -> Void)? {
        get { networkAttempts.state.withLock { $0.offlineHandler } }
        set {
            var handler = newValue
            networkAttempts.state.withLock { state in
                if state.machine.phase != .ended { swap(&state.offlineHandler, &handler) }
            }
        }
    }
}

extension NetworkAttempts {
    func set(_ policy: OfflinePolicy?) {
        let agent = policy.map(OfflineAgent.init)
        set(agent)
        set(gate: agent)
    }
}

extension AttemptHost {
    /// Notifies the handler and the delegates that the operation waits, unless the operation ends before the
    /// notification.
    func tellOfWaitForNetwork() {
        notify(offlineHandler, unless: { [self] in networkAttempts.isEnded || isFinishedOrCancelled }) {
            [self] delegate in
            delegate.networkOperationWaitsForNetwork(self)
        }
    }
}

extension NetworkError {
    /// Creates an error about the wait itself.
    ///
    /// - Parameter failure: The failure after which the operation waited, or `nil` if nothing was sent.
    static func offline(_ code: Code, _ policy: OfflinePolicy, after failure: NetworkError?) -> NetworkError {
        let message =
            switch code {
            case .offlineTooLong:
                "The network did not return within \(policy.longestWait ?? .zero). "
                    + "Check the network and try again, or allow a longer wait (longestWait)."
            case .offlineTooOften:
                "The network was lost repeatedly, and the operation already waited for it \(policy.mostWaits) times. "
                    + "Try again when the network is stable, or allow more waits (mostWaits)."
            case .tooManyOffline:
                "As many operations as allowed already wait for the network. Try again later, or raise the capacity of "
                    + "the OfflineWaiting."
            case .bodyNotRepeatable:
                "The network was lost while the request was being sent, and the body can be read only once. Send data, "
                    + "a file, or a stream that can be created again. The request failed with this error: "
                    + "\(failure?.message ?? "")"
            default: "The network is unavailable. Check it and try again."
            }
        var error = NetworkError(
            code: code, phase: failure?.phase ?? .waiting, message: message, request: failure?.request,
            underlying: failure?.underlying)
        if let failure {
            error.isUnsent = failure.isUnsent
            error.status = failure.status
            error.cause = failure
        }
        return error
    }

    /// A Boolean value that indicates whether an unavailable network may have caused the error.
    var isAboutNetwork: Bool {
        isAboutWaiting || OfflineRule.standard.contains { $0.code == codeOfRefresh ?? code }
    }
}

extension Double {
    /// The random number of a user's closure, limited to the range from 0 to 1.
    package var asChance: Double { self >= 0 ? min(self, 1) : 0 }
}
