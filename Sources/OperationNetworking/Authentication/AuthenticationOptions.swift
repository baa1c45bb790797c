// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A set of options for an ``Authenticator``.
public struct AuthenticationOptions: Sendable {
    /// The name of the realm in errors, logs and explanations.
    ///
    /// The default is an empty string.
    public var name = ""
    /// The origins whose requests get the credential.
    ///
    /// The default is `nil`, which applies the credential to the requests of the realm's operations to every origin.
    /// The realm compares only the scheme, the host and the port of a URL. If a URL does not identify an origin, the
    /// realm's operations fail with an error that explains the problem.
    ///
    /// ``Endpoint/at(_:allowsOtherOrigin:)`` can send a request to an origin other than the origin of its base. Such a
    /// request gets the credential only if this property contains that origin.
    public var origins: [URL]?
    /// A closure that returns whether a response rejects the credential.
    ///
    /// The default closure returns `true` for the status code 401. The closure is called with the status and headers of
    /// each response, on any thread.
    public var isRejected: @Sendable (ResponseHead) -> Bool = { $0.status == 401 }
    /// The time before a credential expires at which the realm refreshes the credential and stops using it.
    ///
    /// The default is 60 seconds. This time allows for the duration of the request and for differences between clocks.
    /// A new credential whose lifetime is shorter than this value is used until the server rejects it.
    public var leeway = Duration.seconds(60)
    /// The maximum duration of a refresh.
    ///
    /// The default is 30 seconds.
    public var refreshTimeout = Duration.seconds(30)
    /// The maximum number of refreshes that may begin within ``refreshWindow``.
    ///
    /// The default is 5.
    public var maximumRefreshes = 5
    /// The period to which ``maximumRefreshes`` applies.
    ///
    /// The default is 30 seconds.
    public var refreshWindow = Duration.seconds(30)
    /// A closure that returns whether a refresh that failed with an error may succeed later.
    ///
    /// If the closure returns `false`, the failure remains in effect until the realm gets another credential. The
    /// default closure returns `true` in these cases:
    ///
    /// - The network or the server failed, as in ``RetryRule/standard``.
    /// - The refresh was canceled.
    /// - A queue did not accept the refresh.
    ///
    /// The realm always assumes that a refresh that timed out may succeed later.
    public var mayPass: @Sendable (any Error) -> Bool = { AuthenticationOptions.isPassing($0) }
    /// The time for which a temporary failure of a refresh remains in effect.
    ///
    /// The default is 10 seconds. During this time, requests fail with that failure, and no refresh begins. If the
    /// server asks for a longer pause in `Retry-After`, no refresh begins before the end of that pause. The realm
    /// respects a pause of at most ten minutes.
    public var pauseAfterFailure = Duration.seconds(10)
    /// The pace at which the paused operations resume.
    public var pace = PostponementPace.standard
    /// A closure that the realm calls with each event, in the order of the events, on a separate queue.
    ///
    /// The default is `nil`.
    public var eventHandler: (@Sendable (AuthenticationEvent) -> Void)?
    /// The handlers to call on the main actor, in the order in which they were added.
    private(set) var mainActorEventHandlers: [@MainActor (AuthenticationEvent) -> Void] = []
    /// The clock that measures the times in these options.
    ///
    /// The default is the system clock.
    public var clock: any OperationClock = SystemClock.shared

    /// Creates the standard options.
    public init() {}

    /// Adds a closure to call on the main actor with each event, in the order of the events.
    ///
    /// The closure is called in addition to the ``eventHandler``.
    ///
    /// - Parameter body: The closure to call with each event.
    public mutating func onMainActor(event body: @escaping @MainActor (AuthenticationEvent) -> Void) {
        mainActorEventHandlers.append(body)
    }

    /// A Boolean value that indicates whether there is an event handler.
    var areEventsWanted: Bool { eventHandler != nil || !mainActorEventHandlers.isEmpty }

    /// The standard options.
    public static let standard = AuthenticationOptions()

    /// Returns whether an error leaves the validity of the credential open.
    ///
    /// That is the case for a canceled refresh, a full queue, a missing network or a failure of the server.
    private static func isPassing(_ error: any Error) -> Bool {
        switch error {
        case is CancellationError, is QueueError: return true
        case let failure as any EndOfOperation:
            return failure.errorOfOperation.map(isPassing) ?? true
        default: break
        }
        let known = NetworkError(error)
        switch known.code {
        case .cancelled, .refreshTimedOut, .tooManyRefreshes: return true
        // The refresh depends on another operation that failed, such as the refresh of another realm.
        case .refreshFailed, .preparationFailed: return known.cause.map(isPassing) ?? false
        default: return known.isAboutWaiting || RetryRule.standard.contains { $0.matches(known) }
        }
    }

    /// Returns the network error that caused the failure of a refresh, if there is one.
    static func networkError(in error: any Error) -> NetworkError? {
        switch error {
        case let failure as any EndOfOperation: failure.errorOfOperation.flatMap(networkError)
        case is NetworkError, is URLError: NetworkError(error)
        default: nil
        }
    }
}

/// An error that ended an operation without a result, regardless of its generic type.
private protocol EndOfOperation: Error {
    /// The error of the operation, or `nil` if the operation was canceled.
    var errorOfOperation: (any Error)? { get }
}

extension OperationFailure: EndOfOperation {
    fileprivate var errorOfOperation: (any Error)? { if case .failed(let error) = self { error } else { nil } }
}

/// An object that adds a credential to requests and refreshes it once for all requests when the server rejects it.
///
/// A simple implementation looks for the status code 401 in a response, fetches a token and sends the request again.
/// This implementation has three problems:
///
/// - Forty concurrent requests fetch forty tokens. A server that rotates tokens accepts only one of them.
/// - Requests that begin during the refresh are sent with the old token.
/// - Canceling the first request discards the token for all other requests.
///
/// An authenticator pauses a rejected request and releases its slot in the queue. The authenticator then refreshes the
/// credential once. During the refresh, no request is sent with the old credential. After the refresh, each paused
/// request is created again and sent.
///
/// ```swift
/// struct Token: Decodable, Sendable { let access: String, refresh: String, lifetime: Double }
///
/// func shop(at url: URL, signedInWith token: Token) -> NetworkBase {
///     let plain = NetworkBase(url)
///     let authenticator = Authenticator(token, lifetime: { .seconds($0.lifetime) }) { token, request in
///         try request.with("Authorization", "Bearer \(token.access)")
///     } refresh: { old in
///         try await plain.send(["token": old?.refresh], to: "token").run()
///     }
///     var base = NetworkBase(url)
///     base.authenticate(by: authenticator)
///     return base
/// }
/// ```
///
/// An authenticator represents one realm. Create one authenticator for each realm, and keep the authenticator as long
/// as operations use it.
public final class Authenticator<Credential: Sendable>: Sendable {
    /// The realm, independent of the type of its credential, which you pass to operations and network bases.
    public let realm: AuthenticationRealm

    /// Creates an authenticator for a realm.
    ///
    /// - Parameters:
    ///   - credential: The current credential, such as a stored one, or `nil` if there is none yet.
    ///   - options: The options of the authenticator.
    ///   - lifetime: A closure that returns how long a new credential is valid, or `nil` if the lifetime is unknown.
    ///   - apply: A closure that adds a credential to a request, after all other preparation.
    ///   - refresh: A closure that fetches a new credential. The closure receives the last credential, which may have
    ///     expired. Store the new credential before you return it. Only one refresh runs at a time. The closure runs in
    ///     its own task, independently of the waiting operations. Network operations that you create within the closure
    ///     never wait for this realm. If the closure is `nil`, requests wait until you call ``set(_:)``.
    public init(
        _ credential: Credential? = nil, options: AuthenticationOptions = .standard,
        lifetime: @escaping @Sendable (Credential) -> Duration? = { _ in nil },
        apply: @escaping @Sendable (Credential, NetworkRequest) throws -> NetworkRequest,
        refresh: (@Sendable (Credential?) async throws -> Credential)?
    ) {
        var closures = AuthenticationRealm.Closures(
            apply: { credential, request in
                guard let credential = credential as? Credential else { return request }
                return try apply(credential, request)
            },
            lifetime: { ($0 as? Credential).flatMap(lifetime) })
        if let refresh { closures.refresh = { try await refresh($0 as? Credential) } }
        realm = AuthenticationRealm(options, closures)
        if let credential { realm.set(credential) }
    }

    /// The current credential, or `nil` if there is no usable credential.
    public var credential: Credential? { realm.credential as? Credential }

    /// Sets a new credential, for example after a user signs in.
    ///
    /// This method discards the state of the old credential and any refresh that is running. Waiting operations resume.
    public func set(_ credential: Credential) { realm.set(credential) }

    /// Removes the credential.
    ///
    /// Waiting operations fail. New operations also fail, until you call ``set(_:)``.
    public func signOut() { realm.signOut() }

    /// Makes all waiting operations fail, for example because the user canceled a sign-in.
    ///
    /// A refresh that is running continues.
    ///
    /// - Parameter error: The reason for the failure.
    public func failPostponed(because error: (any Error)? = nil) { realm.failPostponed(because: error) }

    /// The operations that wait for a credential, in the order of their arrival.
    public var postponed: [any AnyNetworkOperation] { realm.postponed }

    /// The number of operations that wait for a credential.
    public var postponedCount: Int { realm.postponedCount }
}

/// An event that describes a change in the state of a realm's credential.
public struct AuthenticationEvent: Sendable, CustomStringConvertible {
    /// A kind of event.
    ///
    /// Future versions may add kinds.
    public struct Kind: Sendable, Hashable, CustomStringConvertible {
        /// The name of the kind, suitable as a metric label.
        public let description: String

        private init(_ name: String) { description = name }

        /// A refresh began.
        ///
        /// From this event on, no request is sent with the old credential.
        public static let refreshBegan = Kind("refreshBegan")
        /// The realm needs a credential, but has no closure to fetch one.
        ///
        /// Set a credential, for example after a sign-in.
        public static let credentialWanted = Kind("credentialWanted")
        /// The realm has a new credential.
        public static let credentialCame = Kind("credentialCame")
        /// A refresh failed or timed out.
        public static let refreshFailed = Kind("refreshFailed")
        /// Paused operations resumed.
        public static let released = Kind("released")
        /// Paused operations failed.
        public static let failed = Kind("failed")
    }

    /// The kind of the event.
    public let kind: Kind
    /// The name of the realm.
    public let realm: String
    /// A number that increases with each new credential and each sign-out, starting at 0.
    public let version: Int
    /// The number of operations that the event concerns.
    public let count: Int
    /// The error with which the refresh or the operations failed.
    public let error: NetworkError?

    /// The event as one line of text, for a log.
    public var description: String {
        let name = realm.isEmpty ? "" : " \(realm)"
        let number = count > 0 ? ", \(count) operations" : ""
        return "realm\(name): \(kind), credential \(version)\(number)" + (error.map { ", \($0)" } ?? "")
    }
}
