// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A policy that makes operations wait while the network is unavailable.
///
/// An operation without a policy sends its request even if the network is unavailable. To apply a policy to all
/// requests to a service, change a copy of ``standard``, and assign the copy to ``NetworkBase/offline``:
///
/// ```swift
/// var policy = OfflinePolicy.standard
/// policy.longestWait = .seconds(30)
/// let shop = NetworkBase(URL(string: "https://api.example.com/v1/")!) {
///     $0.offline = policy
///     $0.offlineHandler = { print("No network. The request waits.") }
/// }
/// let titles: [String] = try await shop.get("titles").run()
/// print(titles.count)
/// ```
///
/// You can also set ``AnyNetworkOperation/offline`` on a single operation before it starts. If a user is waiting for
/// the result, use ``failFast``.
///
/// With the default settings, an operation waits if the network is unavailable when the operation is ready to send a
/// request. The operation also waits after a failure that the unavailable network can have caused, if the request is
/// safe to repeat. An operation waits at most 10 times and 5 minutes in total. If a download makes progress, both
/// limits restart. Only the time without a network counts toward the 5 minutes. Requests to `localhost` and loopback
/// addresses do not wait. When the network returns, about 20 operations resume per second.
///
/// If an operation waits for the network after a failed attempt, this attempt does not count toward
/// ``RetryPolicy/maximumAttempts``.
///
/// A policy is a value. An operation copies the value when you set the operation's `offline` property, or when you
/// create the operation with a base. All copies of a policy share its ``waiting`` object, which limits how many
/// operations wait and how fast they resume.
///
/// Guide: `Docs/Guides/Offline.md`
public struct OfflinePolicy: Sendable {
    /// The behavior of an operation that is ready to send a request while the network is unavailable.
    ///
    /// Future versions may add cases.
    public enum BeforeSending: Sendable, Hashable {
        /// The operation sends its request even though the network is unavailable.
        case send
        /// The operation waits for the network before it sends its request.
        case wait
        /// The operation fails immediately with ``NetworkError/Code/offline``.
        case fail
    }

    /// The queue in which operations wait until the monitor of the queue reports that the network is available.
    public var waiting: OfflineWaiting
    /// The behavior of an operation that is ready to send a request while the network is unavailable.
    ///
    /// The default is ``OfflinePolicy/BeforeSending/wait``.
    public var beforeSending = BeforeSending.wait
    /// The rules that identify the failures after which an operation waits for the network.
    ///
    /// The operation waits only if the network is unavailable when the failure occurs. If the array is empty, the
    /// operation does not wait after a failure. By default, the rules match the codes `notConnected`, `cannotFindHost`,
    /// `cannotConnect`, `timedOut`, `connectionLost` and `truncatedBody`. The policy ignores
    /// ``RetryRule/limited(to:)`` and ``RetryRule/throttling()``, because ``mostWaits`` limits the number of waits.
    public var rules = RetryRule.offline
    /// The HTTP methods of the requests that an operation can safely send again after a failure.
    ///
    /// The default is the default value of ``RetryPolicy/methods``. If the value is `nil`, all methods count as safe.
    /// After a failure of a request with any other method, the operation waits only in the following cases:
    ///
    /// - ``NetworkError/isUnsent`` is `true`.
    /// - A refresh of the credential failed.
    /// - The request has an `Idempotency-Key` header.
    public var methods = RetryPolicy().methods
    /// The maximum total time for which an operation waits for the network.
    ///
    /// The default is 5 minutes. If the value is `nil`, the time is not limited. When the operation has waited that
    /// long, it fails with ``NetworkError/Code/offlineTooLong``. The clock of ``waiting`` measures the time.
    ///
    /// After the network returns, the time until the operation resumes does not count toward this limit. If the limit
    /// is reached while the operation is suspended, the operation does not fail. Instead, the operation checks the
    /// network again when you resume it.
    public var longestWait: Duration? = .seconds(300)
    /// The maximum number of times that an operation waits for the network.
    ///
    /// The default is 10. If an operation has already waited this many times and would have to wait again, it fails
    /// with ``NetworkError/Code/offlineTooOften``.
    ///
    /// Whenever an attempt fails after the partial file of a download has grown by at least 64 KiB, this count and the
    /// time of ``longestWait`` restart from zero.
    public var mostWaits = 10
    /// A closure that returns whether a request requires the network.
    ///
    /// If the closure returns `false`, the operation ignores the state of the network for this request. The default
    /// closure returns `false` for requests to `localhost`, its subdomains and loopback addresses, and `true` for all
    /// other requests.
    ///
    /// An operation can call the closure on any thread.
    public var concerns: @Sendable (NetworkRequest) -> Bool = { !OfflinePolicy.staysHere($0) }

    /// Creates a policy with the default values.
    ///
    /// - Parameter waiting: The queue in which operations wait for the network. The default is
    ///   ``OfflineWaiting/shared``.
    public init(waiting: OfflineWaiting = .shared) {
        self.waiting = waiting
    }

    /// A policy that makes operations wait for the network for up to five minutes.
    public static let standard = OfflinePolicy()

    /// A policy that makes an operation fail immediately with ``NetworkError/Code/offline`` if the network is
    /// unavailable when the operation is ready to send a request.
    ///
    /// If the network becomes unavailable later, the operation does not wait, but fails with the error of its request.
    /// Use this policy if a user is waiting for the result and can repeat the action.
    public static let failFast: OfflinePolicy = {
        var policy = OfflinePolicy()
        policy.beforeSending = .fail
        policy.rules = []
        return policy
    }()

    /// Returns a Boolean value that indicates whether the host of a request is this device, so that the request does
    /// not require the network.
    package static func staysHere(_ request: NetworkRequest) -> Bool {
        let host = request.origin.place.host
        if host == "localhost" || host.hasSuffix(".localhost") { return true }
        return host == "::1" || host.hasPrefix("127.") && HostName.isIPv4(host)
    }

    /// Returns the rule for a failure, if waiting can help and the request can safely be sent again.
    package func rule(for error: NetworkError, of request: NetworkRequest) -> RetryRule? {
        // If a credential refresh failed, the request for which it was needed was rejected or was not sent.
        let refresh = error.codeOfRefresh, hasKey = request.idempotencyKey != nil
        let rule = rules.first { rule in refresh.map { rule.matches($0) } ?? rule.matches(error) }
        guard let rule, hasKey || !rule.needsKey else { return nil }
        let isHarmless =
            refresh != nil || error.isUnsent || methods?.contains(request.method) ?? true || hasKey
        return isHarmless ? rule : nil
    }
}

// The standard rules. Other failures have other causes, even while the network is unavailable: responses of a server,
// certificates, invalid requests, and bodies that cannot be read.
extension RetryRule {
    /// The default rules of a policy, which match the errors that an unavailable network can cause.
    package static let offline: [RetryRule] = [
        .failure(.notConnected, because: "The system has no route to the host."),
        .failure(.cannotFindHost, because: "A DNS lookup needs the network."),
        .failure(.cannotConnect, because: "A connection needs the network."),
        .failure(.timedOut, because: "The network connection was lost before the response arrived."),
        .failure(.connectionLost, because: "The connection broke when the network became unavailable."),
        .failure(.truncatedBody, because: "The response ended when the network became unavailable."),
    ]
}

// Set these properties before the operation starts.
extension AnyNetworkOperation {
    /// The policy that determines the operation's behavior while the network is unavailable.
    ///
    /// The default is `nil`, which makes the operation ignore the state of the network. Set this property before the
    /// operation starts. If neither you nor the operation's ``NetworkBase`` sets this property, the operation uses the
    /// policy of its group.
    public var offline: OfflinePolicy? {
        get { (networkAttempts.policies?[.offline] as? OfflineAgent)?.policy }
        set {
            guard maySet("offline policy") else { return }
            networkAttempts.set(newValue, bySetting: .offline)
        }
    }

    /// A closure that the operation calls on its callback queue when the operation begins to wait for the network.
    ///
    /// For example, the closure can show a banner. Depending on its ``AnyNetworkOperation/offline`` policy, the
    /// operation waits before it sends a request or after a request fails.
    ///
    /// The operation calls the closure once for each outage during which it waits. When the operation ends, it releases
    /// the closure.
    public var offlineHandler: (@Sendable () -> Void)? {
        get { networkAttempts.state.withLock { $0.handlers?.offline } }
        set { networkAttempts.changeHandlers { $0.offline = newValue } }
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
                "The maximum number of operations already waits for the network. Try again later, or raise the "
                    + "capacity of the OfflineWaiting."
            case .bodyNotRepeatable:
                "The network was lost while the request was being sent, and the body can be read only once. Send data, "
                    + "a file, or a stream that can be created again. The request failed with this error: "
                    + "\(failure?.message ?? "")"
            default: "The network is unavailable. Check the network and try again."
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
        isAboutWaiting || RetryRule.offline.contains { $0.matches(codeOfRefresh ?? code) }
    }
}

/// A queue of operations that wait for the network and resume one after another when the network returns.
///
/// All operations that use the same instance share its capacity and pace. By default, an ``OfflinePolicy`` uses the
/// ``shared`` instance.
///
/// ```swift
/// let patient = OfflineWaiting(capacity: 100, perSecond: 5)
/// var policy = OfflinePolicy(waiting: patient)
/// policy.longestWait = .seconds(3600)
/// ```
public final class OfflineWaiting: Sendable {
    /// A closure that receives the end of the wait, and the time for which the network was unavailable during the wait.
    package typealias Body = @Sendable (GateEnd, Duration) -> Void

    /// The shared instance, which an ``OfflinePolicy`` uses by default.
    public static let shared = OfflineWaiting()

    /// The monitor that reports whether the network is available.
    package let monitor: any ConnectivityMonitor
    /// The gate, which is closed while the network is unavailable.
    private let gate: GateShell<GateMachine<Body>>
    private let observation = Locked((isStarted: false, token: Optional<ConnectivityObservation>.none))

    /// Creates a queue of operations that wait for the network.
    ///
    /// - Parameters:
    ///   - monitor: The monitor that reports whether the network is available. The default is the system monitor.
    ///   - capacity: The maximum number of operations that can wait at the same time. If the queue is full, an
    ///     operation that would have to wait fails with ``NetworkError/Code/tooManyOffline``. The default is 10,000.
    ///   - perSecond: The average number of operations that resume per second. The default is 20. The minimum is 0.001,
    ///     which is one operation in 1,000 seconds.
    ///   - settling: The minimum time for which the network must be available before the first operation resumes. The
    ///     default is half a second. The actual time is a random value between this value and twice this value, so that
    ///     many devices do not send requests at the same moment. If the network becomes unavailable again within that
    ///     time, no operation resumes.
    ///   - clock: The clock that measures the waits. The default is the system clock.
    ///   - chance: A closure that returns a random number from 0 to 1, which varies the times at which operations
    ///     resume. Replace this closure only in tests.
    public init(
        monitor: any ConnectivityMonitor = .system, capacity: Int = 10_000, perSecond: Double = 20,
        settling: Duration = .milliseconds(500), clock: any OperationClock = .system,
        chance: @escaping @Sendable () -> Double = { .random(in: 0..<1) }
    ) {
        self.monitor = monitor
        let pace = PostponementPace.perSecond(perSecond, settling: settling)
        gate = GateShell(
            GateMachine(pace: pace, capacity: max(capacity, 0), now: clock.now), clock: clock, chance: chance,
            nextDue: \.nextDue
        ) { gate, now, chance in
            gate.timePassed(now: now, chance: chance).map { wait in { wait.waiter(wait.end, wait.timeClosed) } }
        }
    }

    /// The number of operations that are currently waiting for the network.
    public var waitingCount: Int { gate.withLock { $0.count } }

    /// The number of times that the network was lost.
    var outage: Int { gate.withLock { $0.closings } }

    /// Begins to wait for the network.
    ///
    /// `body` is called once, on another thread, unless the caller calls `leave(_:)` first. The time counts toward
    /// the limit only while the network is unavailable.
    ///
    /// - Returns: A ticket for the wait, or `nil` if the capacity is exhausted.
    package func enter(atMost limit: Duration?, _ body: @escaping Body) -> UInt64? {
        watch()
        return gate.apply { gate, now, chance in
            (gate.enter(body, atMost: limit, now: now, chance: chance), [])
        }
    }

    /// Ends a wait early, and returns `false` if the wait has already ended and its end was or will be reported.
    @discardableResult
    package func leave(_ ticket: UInt64) -> Bool {
        // The waiter's contents are released here, without holding the lock.
        gate.apply { gate, _, _ in (gate.leave(ticket), []) } != nil
    }

    /// Starts to observe the network when the first operation waits.
    private func watch() {
        guard !observation.withLock({ exchange(&$0.isStarted, with: true) }) else { return }
        let token = monitor.observe { [weak self] connectivity in
            self?.gate.apply { gate, now, chance in
                (connectivity.isOffline ? gate.close(now: now) : gate.open(now: now, chance: chance), [])
            }
        }
        observation.withLock { $0.token = token }
    }
}
