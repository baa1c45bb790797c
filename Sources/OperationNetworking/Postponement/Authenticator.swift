// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Puts a credential into requests, and renews it once for all of them when it is of no use any more.
///
/// The naive way is to look for 401 where the answer is read, fetch a token there, and send again. With forty requests under
/// way that fetches forty tokens, of which a server that rotates them accepts one; requests that begin meanwhile leave with
/// the old one; and whoever cancels the first of them loses the token for all.
///
/// Here a request that is rejected is postponed: it gives up its place in its queue, the credential is refreshed once, no
/// request leaves with the old one meanwhile, and then each is made anew and sent.
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
/// One authenticator is one realm: make one for each, and keep it as long as its operations need it.
public final class Authenticator<Credential: Sendable>: Sendable {
    /// The realm, whatever the type of its credential: what operations and bases take.
    public let realm: AuthenticationRealm

    /// Makes a realm.
    ///
    /// - Parameters:
    ///   - credential: The present credential, such as a stored one; nil if there is none yet.
    ///   - options: How it goes about it.
    ///   - lifetime: How long a credential is good from the moment when it came; nil if it does not say.
    ///   - apply: Puts a credential into a request, after all other preparation.
    ///   - refresh: Fetches a new credential; gets the last one, which may be out of date. Store what it returns before
    ///     it returns. It runs once at a time, in a task of its own, whatever becomes of the operations that wait. Network
    ///     operations that are made within it never wait for this realm. If it is nil, requests wait until ``set(_:)``.
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

    /// The present credential; nil while there is none that may be used.
    public var credential: Credential? { realm.credential as? Credential }

    /// Sets a new credential, for instance after somebody signed in.
    ///
    /// Whatever was remembered of the old one is forgotten, a refresh that is under way is dropped, and those that wait go
    /// on.
    public func set(_ credential: Credential) { realm.set(credential) }

    /// Lets no credential be used any more: those that wait fail, and those that come, until ``set(_:)``.
    public func signOut() { realm.signOut() }

    /// Lets those fail that wait now, for instance because a sign-in was given up; a refresh that is under way goes on.
    public func failPostponed(because error: (any Error)? = nil) { realm.failPostponed(because: error) }

    /// The operations that wait for a credential, in the order in which they came.
    public var postponed: [any AnyNetworkOperation] { realm.postponed }

    /// How many operations wait for a credential.
    public var postponedCount: Int { realm.postponedCount }
}
