// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// How an ``Authenticator`` goes about it: each value with its default.
public struct AuthenticationOptions: Sendable {
    /// What the realm is called in errors, logs and explanations: nothing.
    public var name = ""
    /// The places whose requests get the credential; all to which its operations send anything if nil.
    ///
    /// Of a URL only scheme, host and port count. If one of them has none, the realm's operations fail and say so.
    ///
    /// A request that ``Endpoint/at(_:allowsOtherOrigin:)`` sends to another origin than that of its base gets the credential
    /// only if that origin is named here.
    public var origins: [URL]?
    /// Whether a response says that the credential is of no use any more: status 401.
    ///
    /// Asked about each head, on any thread.
    public var isRejected: @Sendable (ResponseHead) -> Bool = { $0.status == 401 }
    /// How long before its end a credential is renewed and not used any more: a minute.
    ///
    /// It takes the request's way and different clocks into account. One that has less than this left when it is fetched
    /// is used until it is rejected.
    public var leeway = Duration.seconds(60)
    /// How long a refresh may take: 30 seconds.
    public var refreshTimeout = Duration.seconds(30)
    /// How many refreshes may begin within ``refreshWindow``: 5.
    public var maximumRefreshes = 5
    /// The time in which they are counted: 30 seconds.
    public var refreshWindow = Duration.seconds(30)
    /// Whether a refresh that failed so may do better later; if not, its failure counts until there is another credential.
    ///
    /// The standard: the network or the server failed, as in ``RetryRule/standard``, or it was cancelled, or a queue did not
    /// take it. A refresh that takes too long may do better in any case.
    public var mayPass: @Sendable (any Error) -> Bool = { AuthenticationOptions.isPassing($0) }
    /// For how long a failure counts that may pass: 10 seconds.
    ///
    /// Meanwhile requests fail with it, and no refresh begins. A server that asks to wait longer (`Retry-After`) is not asked
    /// before that, or ten minutes.
    public var pauseAfterFailure = Duration.seconds(10)
    /// How fast postponed operations go on.
    public var pace = PostponementPace.standard
    /// Told what happens, in that order, on a queue of its own.
    public var eventHandler: (@Sendable (AuthenticationEvent) -> Void)?
    /// Called on the main actor, in the order in which they were added.
    private(set) var mainActorEventHandlers: [@MainActor (AuthenticationEvent) -> Void] = []
    /// Where all these times are measured.
    public var clock: any OperationClock = SystemClock.shared

    /// Makes the standard options.
    public init() {}

    /// Calls `body` on the main actor with what happens, in that order, beside the ``eventHandler``.
    public mutating func onMainActor(event body: @escaping @MainActor (AuthenticationEvent) -> Void) {
        mainActorEventHandlers.append(body)
    }

    /// Whether there is a handler of events.
    var areEventsWanted: Bool { eventHandler != nil || !mainActorEventHandlers.isEmpty }

    /// The standard options.
    public static let standard = AuthenticationOptions()

    /// Whether an error says nothing of the credential: what was cancelled, found no room or no network, or met a server
    /// that failed.
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
        // What the fetch waited for failed, such as the refresh of another realm.
        case .refreshFailed, .preparationFailed: return known.cause.map(isPassing) ?? false
        default: return known.isAboutWaiting || RetryRule.standard.contains { $0.matches(known) }
        }
    }

    /// What a refresh that failed says of the network, or of the server.
    static func networkError(in error: any Error) -> NetworkError? {
        switch error {
        case let failure as any EndOfOperation: failure.errorOfOperation.flatMap(networkError)
        case is NetworkError, is URLError: NetworkError(error)
        default: nil
        }
    }
}

/// How an operation ended without a result, whatever the type of its error.
private protocol EndOfOperation: Error {
    /// Why; nil if it was cancelled.
    var errorOfOperation: (any Error)? { get }
}

extension OperationFailure: EndOfOperation {
    fileprivate var errorOfOperation: (any Error)? { if case .failed(let error) = self { error } else { nil } }
}
