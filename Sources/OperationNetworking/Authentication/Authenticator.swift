// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The options for an ``Authenticator``, such as the origins that get the credential and the limits on refreshes.
public struct AuthenticationOptions: Sendable {
    /// The name that identifies the authenticator in errors and logs.
    ///
    /// The default is an empty string.
    public var name = ""
    /// The origins to which OperationKit sends the credential.
    ///
    /// The default is `nil`. With this value, an operation of a ``NetworkBase`` sends the credential only to the origin
    /// of the base, even if a hook or a ``PostponedOperations/Change`` changes the URL. Any other operation sends the
    /// credential to all origins.
    ///
    /// The authenticator compares only the scheme, the host and the port of a URL. If a URL in this array does not
    /// specify a scheme and a host, operations that use the authenticator fail with ``NetworkError/Code/invalidURL``.
    ///
    /// To also send the credential to another origin, for example with ``Endpoint/at(_:allowsOtherOrigin:)``, list the
    /// origin of the base and the other origin in this array.
    public var origins: [URL]?
    /// A closure that returns whether a response indicates that the server rejected the credential.
    ///
    /// The default closure returns `true` for the status code 401. The authenticator calls the closure, on any thread,
    /// for each response to a request that contains the credential.
    public var isRejected: @Sendable (ResponseHead) -> Bool = { $0.status == 401 }
    /// The remaining lifetime below which the authenticator refreshes a credential before the next request.
    ///
    /// The default is 60 seconds. This time allows for the duration of a request and for differences between clocks. If
    /// a refresh returns a credential with a shorter lifetime, the authenticator uses the credential until the server
    /// rejects it.
    public var leeway = Duration.seconds(60)
    /// The maximum duration of a refresh of the credential.
    ///
    /// The default is 30 seconds.
    public var refreshTimeout = Duration.seconds(30)
    /// The maximum number of refreshes that can begin within a period of ``refreshWindow``.
    ///
    /// The default is 5.
    public var maximumRefreshes = 5
    /// The length of the period in which at most ``maximumRefreshes`` refreshes can begin.
    ///
    /// The default is 30 seconds.
    public var refreshWindow = Duration.seconds(30)
    /// A closure that returns whether a later refresh can succeed after a refresh failed with an error.
    ///
    /// If the closure returns `false`, all requests that need the credential fail until the authenticator gets another
    /// credential, for example from ``Authenticator/set(_:)``. The default closure returns `true` in these cases:
    ///
    /// - A request failed with an error that ``RetryRule/standard`` matches, or because the network was unavailable.
    /// - The refresh was canceled.
    /// - A queue or a group did not accept an operation of the refresh.
    /// - The refresh needed the credential of another authenticator, whose refresh failed temporarily.
    ///
    /// After a refresh times out, the authenticator does not call the closure, and assumes that a later refresh can
    /// succeed.
    public var mayPass: @Sendable (any Error) -> Bool = { AuthenticationOptions.isPassing($0) }
    /// The minimum time between a temporary failure of a refresh and the next refresh.
    ///
    /// The default is 10 seconds. During this time, requests that need a new credential fail with the error of the
    /// failed refresh. If the server specifies a longer time in the `Retry-After` header, the authenticator
    /// uses that time, but at most ten minutes.
    public var pauseAfterFailure = Duration.seconds(10)
    /// The pace at which paused operations resume after the authenticator gets a new credential.
    package var pace = PostponementPace.standard
    /// A closure that the authenticator calls with each authentication event, in the order of the events, on a serial
    /// queue.
    ///
    /// The default is `nil`.
    public var eventHandler: (@Sendable (AuthenticationEvent) -> Void)?
    /// The handlers to call on the main actor, in the order in which they were added.
    private(set) var mainActorEventHandlers: [@MainActor (AuthenticationEvent) -> Void] = []
    /// The clock that measures the times in these options.
    ///
    /// The default is the system clock.
    public var clock: any OperationClock = SystemClock.shared

    /// Creates options with the default values.
    public init() {}

    /// Adds a closure that the authenticator calls on the main actor with each authentication event, in the order of
    /// the events.
    ///
    /// The authenticator also calls the ``eventHandler`` and the closures that you added earlier.
    ///
    /// - Parameter body: The closure to call with each event.
    public mutating func onMainActor(event body: @escaping @MainActor (AuthenticationEvent) -> Void) {
        mainActorEventHandlers.append(body)
    }

    /// A Boolean value that indicates whether there is an event handler.
    var areEventsWanted: Bool { eventHandler != nil || !mainActorEventHandlers.isEmpty }

    /// Options with the default values.
    package static let standard = AuthenticationOptions()

    /// Returns whether an error leaves the validity of the credential open.
    ///
    /// That is the case for a canceled refresh, a full queue, a missing network or a failure of the server.
    private static func isPassing(_ error: any Error) -> Bool {
        switch error {
        case is CancellationError: return true
        case let error as OperationSetupError: return error.code != .cycle && error.code != .cannotWait
        case let failure as any AnyOperationFailure:
            return failure.underlyingError.map(isPassing) ?? true
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
        case let failure as any AnyOperationFailure: failure.underlyingError.flatMap(networkError)
        case is NetworkError, is URLError: NetworkError(error)
        default: nil
        }
    }
}

/// An object that adds a credential to requests and refreshes a rejected or expiring credential only once for all
/// requests.
///
/// Without an authenticator, your code would fetch a new token for each request that gets the status code 401. Forty
/// concurrent requests would then lead to forty new tokens, but a server that rotates tokens accepts only one of these
/// tokens.
///
/// When the server rejects the credential of a request, the authenticator pauses the operation that sent the request,
/// and another operation in the same queue can start. The authenticator then refreshes the credential once. During the
/// refresh, new requests wait. However, requests that are already connecting can still be sent with the old credential.
/// After the refresh, each paused operation creates its request again and sends the new request.
///
/// ```swift
/// struct Token: Decodable, Sendable {
///     let access: String, refresh: String, lifetime: Int
/// }
///
/// func shop(at url: URL, signedInWith token: Token) -> NetworkBase {
///     let plain = NetworkBase(url)
///     let authenticator = Authenticator(
///         token, lifetime: { .seconds($0.lifetime) }
///     ) { token, request in
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
/// Create one authenticator for each realm, which is a set of requests that use the same credential. Add the
/// authenticator to an operation, a group or a ``NetworkBase`` with `authenticate(by:)`, and keep a reference to the
/// authenticator as long as operations use it.
///
/// Guide: `Docs/Guides/Authentication.md`
public final class Authenticator<Credential: Sendable>: Sendable {
    /// The state of the authenticator.
    package let realm: AuthenticationRealm

    /// Creates an authenticator from closures that apply and refresh its credential.
    ///
    /// - Parameters:
    ///   - credential: The current credential, for example from the keychain. The default is `nil`, which means that
    ///     there is no credential yet.
    ///   - options: The options of the authenticator.
    ///   - lifetime: A closure that returns how long a new credential is valid, or `nil` if the lifetime is unknown.
    ///     The default closure returns `nil`.
    ///   - apply: A closure that adds a credential to a request. The authenticator calls the closure, on any thread,
    ///     each time a request is ready to be sent.
    ///   - refresh: A closure that fetches a new credential. The closure receives the last credential, which may have
    ///     expired or been rejected, or `nil` if there is none. Save the new credential, for example in the keychain,
    ///     before you return it, because the authenticator keeps the credential only in memory. A refresh begins only
    ///     after the previous refresh has ended, timed out or been canceled. Canceling an operation that waits for the
    ///     credential does not cancel the refresh. Network operations that you create within the closure do not wait
    ///     for this refresh. If the closure is `nil`, operations that need a new credential wait until you call
    ///     ``set(_:)``.
    public init(
        _ credential: Credential? = nil, options: AuthenticationOptions = AuthenticationOptions(),
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

    /// The current credential, or `nil` if there is none, for example during a refresh.
    public var credential: Credential? { realm.credential as? Credential }

    /// Sets a new credential, for example after a user signs in.
    ///
    /// If a refresh is running, the authenticator cancels it. Operations that wait for a credential resume.
    public func set(_ credential: Credential) { realm.set(credential) }

    /// Removes the credential, for example after a user signs out.
    ///
    /// Operations that wait for a credential fail with ``NetworkError/Code/signedOut``. New operations that need the
    /// credential also fail until you call ``set(_:)``.
    ///
    /// - Important: Before you set the credential of another user, cancel the operations of the old user. Otherwise, an
    ///   operation whose request contains the old credential sends the request again with the new credential if the
    ///   server rejects the old one.
    public func signOut() { realm.signOut() }

    /// Makes all operations that wait for a credential fail with ``NetworkError/Code/refreshFailed``, for example
    /// because the user canceled a sign-in.
    ///
    /// If a refresh is running, the refresh continues.
    ///
    /// - Parameter error: The ``NetworkError/cause`` of the errors with which the operations fail. The default is
    ///   `nil`, which means that the errors have no cause.
    public func failPostponed(because error: (any Error)? = nil) { realm.failPostponed(because: error) }

    /// The operations that wait for a credential, in the order in which they began to wait.
    public var postponed: [any AnyNetworkOperation] { realm.postponed }

    /// The number of operations that wait for a credential.
    package var postponedCount: Int { realm.postponedCount }
}

/// An event that describes a change in the state of an authenticator's credential.
public struct AuthenticationEvent: Sendable, CustomStringConvertible {
    /// A kind of authentication event.
    ///
    /// Future versions may add kinds.
    public struct Kind: Sendable, Hashable, CustomStringConvertible {
        /// The name of the event kind, which you can use as a metric label.
        public let description: String

        private init(_ name: String) { description = name }

        /// The authenticator began to refresh the credential.
        ///
        /// During the refresh, new requests wait.
        public static let refreshBegan = Kind("refreshBegan")
        /// A request needs a credential, but the authenticator has no `refresh` closure.
        ///
        /// Set a credential with ``Authenticator/set(_:)``, for example after the user signs in.
        public static let credentialWanted = Kind("credentialWanted")
        /// The authenticator has a new credential.
        public static let credentialCame = Kind("credentialCame")
        /// A refresh of the credential failed or timed out.
        public static let refreshFailed = Kind("refreshFailed")
        /// Operations that waited for the credential resumed.
        public static let released = Kind("released")
        /// Operations that waited for the credential failed.
        public static let failed = Kind("failed")
    }

    /// The kind of the event.
    public let kind: Kind
    /// The name of the realm, as set in ``AuthenticationOptions/name``.
    public let realm: String
    /// The version of the credential, which starts at 0 and increases with each new credential and each sign-out.
    public let version: Int
    /// The number of operations that resumed or failed if the kind is ``Kind/released`` or ``Kind/failed``; otherwise,
    /// 0.
    public let count: Int
    /// The error with which the refresh or the operations failed, or `nil` if the event reports no failure.
    public let error: NetworkError?

    /// The event as one line of text, for a log.
    public var description: String {
        let name = realm.isEmpty ? "" : " \(realm)"
        let number = count > 0 ? ", \(count) operations" : ""
        return "realm\(name): \(kind), credential \(version)\(number)" + (error.map { ", \($0)" } ?? "")
    }
}
