// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// How an ``Authenticator`` goes about it: each value with its default.
public struct AuthenticationOptions: Sendable {
    /// What the realm is called in errors, logs and explanations: nothing.
    public var name = ""
    /// The places whose requests get the credential; all to which its operations send anything if nil.
    ///
    /// Of a URL only scheme, host and port count.
    public var origins: [URL]?
    /// Whether a response says that the credential is of no use any more: status 401.
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
    /// The standard: the network or the server failed, as in ``RetryRule/standard``, or it took too long.
    public var mayPass: @Sendable (any Error) -> Bool = { AuthenticationOptions.isPassing($0) }
    /// For how long a failure counts that may pass: 10 seconds.
    ///
    /// Meanwhile requests fail with it, and no refresh begins.
    public var pauseAfterFailure = Duration.seconds(10)
    /// How fast postponed operations go on.
    public var pace = PostponementPace.standard
    /// Told what happens, on a queue of the realm's own.
    public var eventHandler: (@Sendable (AuthenticationEvent) -> Void)?
    /// Where all these times are measured.
    public var clock: any OperationClock = SystemClock.shared

    /// Makes the standard options.
    public init() {}

    /// The standard options.
    public static let standard = AuthenticationOptions()

    private static func isPassing(_ error: any Error) -> Bool {
        switch error {
        case let error as NetworkError: RetryRule.standard.contains { $0.matches(error) }
        case OperationFailure<NetworkError>.failed(let error): RetryRule.standard.contains { $0.matches(error) }
        default: false
        }
    }
}
