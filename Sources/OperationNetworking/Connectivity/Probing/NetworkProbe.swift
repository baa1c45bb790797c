// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What a ``ProbeMonitor`` asks, how it reads the answer, and how often it asks.
///
/// ```swift
/// func probe(_ url: URL) -> NetworkProbe {
///     var probe = NetworkProbe(url)
///     probe.interval = .seconds(300)
///     probe.judge = { head in head.headers["X-Service"] == "mine" ? .reached : .intercepted }
///     return probe
/// }
/// ```
public struct NetworkProbe: Sendable {
    /// What an answer says.
    ///
    /// No case will be added.
    public enum Verdict: Sendable, Hashable {
        /// It is from whom it was asked of.
        case reached
        /// It is somebody else's: the page on which one signs in to a network.
        case intercepted
        /// It says nothing about the network, such as an error of the server.
        case unclear
    }

    /// What is asked for.
    public var url: URL
    /// By which method: HEAD.
    public var method = "HEAD"
    /// How often it is asked while the network is there: every minute.
    ///
    /// Chance makes it up to a tenth longer.
    public var interval: Duration = .seconds(60)
    /// How soon it is asked again while it is not: after one second, two, four … 30, or down to half of that by chance.
    ///
    /// One probe without an answer may have been lost: only after a second one the network counts as gone.
    public var backoff = RetryBackoff.exponential(from: .seconds(1), upTo: .seconds(30), jitter: .equal)
    /// How long an answer may take: 10 seconds.
    public var timeout: Duration = .seconds(10)
    /// Reads an answer: 204 is the right one.
    ///
    /// Another that is a success or a redirect, and 511, are somebody else's; anything else says nothing. Nobody else can
    /// answer in the place of a host that is asked by https, so there each success or redirect is right, and 511 says
    /// nothing. It is that of the URL with which the probe was made.
    public var judge: @Sendable (ResponseHead) -> Verdict
    /// Gives a number from 0 up to 1 for each pause.
    public var chance: @Sendable () -> Double = { .random(in: 0..<1) }

    /// Makes a probe that expects the status 204, or by https any success or redirect.
    ///
    /// A page on which one signs in is only found by a URL with `http`: by `https` there is no answer, or a certificate
    /// that is not trusted, which says nothing.
    public init(_ url: URL) {
        self.url = url
        let isSecure = url.scheme?.lowercased() == "https"
        judge = { head in
            switch head.status {
            case 204: .reached
            case 200..<400: isSecure ? .reached : .intercepted
            case 511: isSecure ? .unclear : .intercepted
            default: .unclear
            }
        }
    }
}
