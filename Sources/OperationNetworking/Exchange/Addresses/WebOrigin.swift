// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Scheme, host and port: within one origin secrets may be shared, and never across two.
public struct WebOrigin: Hashable, Sendable, CustomStringConvertible {
    /// `http` or `https`.
    public let scheme: String
    /// The host in lowercase, with letters outside of ASCII in punycode (`xn--`).
    ///
    /// An IPv4 address is written as four decimal numbers. An IPv6 address is in brackets and in its shortest form.
    public let host: String
    /// The port, also where it is the scheme's own.
    public let port: Int

    init(scheme: String, host: String, port: Int) {
        self.scheme = scheme
        self.host = host
        self.port = port
    }

    /// The origin of a URL; nil if it is none of the web.
    public init?(_ url: URL) {
        guard let address = WebAddress(url) else { return nil }
        self = address.origin
    }

    /// Whether what is sent there is encrypted.
    public var isSecure: Bool { scheme == "https" }

    /// The origin as it stands at the beginning of a URL.
    public var description: String { URLAuthority.origin(scheme: scheme, host: host, port: port) }
}
