// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A cookie, which is data that a server stores on the client and receives with later requests.
public struct Cookie: Hashable, Sendable, Codable {
    /// The value of the `SameSite` attribute, which determines whether requests from other sites contain the cookie.
    ///
    /// A ``CookieJar`` stores this value but ignores it when it adds cookies to a request, because only browsers send
    /// requests on behalf of other sites. A jar rejects a cookie from a server if the value is `none` and the cookie is
    /// not secure.
    ///
    /// Only a major version may add cases.
    public enum SameSite: String, Sendable, Codable {
        /// A browser sends the cookie only with requests from the cookie's own site.
        case strict
        /// A browser also sends the cookie when the user follows a link from another site.
        case lax
        /// A browser sends the cookie with requests from all sites.
        case none
    }

    /// The name of the cookie, or an empty string if the cookie has only a value.
    public var name: String
    /// The value of the cookie, including any quotation marks.
    public var value: String
    /// The host or the domain that receives the cookie, in lowercase.
    public var domain: String
    /// A Boolean value that indicates whether only the host ``domain``, and not its subdomains, receives the cookie.
    public var isHostOnly: Bool
    /// The path whose requests contain the cookie, including requests to all paths below it.
    public var path: String
    /// The expiration date of the cookie, or `nil` if it is a session cookie.
    public var expires: Date?
    /// A Boolean value that indicates whether only requests to `https` URLs contain the cookie.
    public var isSecure: Bool
    /// A Boolean value that indicates whether a browser hides the cookie from scripts on webpages.
    public var isHTTPOnly: Bool
    /// The value of the `SameSite` attribute, or `nil` if the cookie does not have that attribute.
    public var sameSite: SameSite?
    /// The date when the cookie was first set.
    package var created: Date
    /// The date when the cookie was last set or sent.
    package var lastUsed: Date

    /// Creates a cookie that only one host receives.
    ///
    /// - Parameters:
    ///   - name: The name of the cookie.
    ///   - value: The value of the cookie.
    ///   - domain: The host that receives the cookie.
    ///   - path: The path whose requests contain the cookie, including requests to all paths below it. The default
    ///     is `/`.
    ///   - expires: The expiration date. The default is `nil`, which creates a session cookie.
    public init(name: String, value: String, domain: String, path: String = "/", expires: Date? = nil) {
        self.name = name
        self.value = value
        // The zone of an IPv6 address is the name of an interface, so its letter case is kept.
        let zone = domain.firstIndex(of: "%") ?? domain.endIndex
        self.domain = String(domain[..<zone]).asciiLowercased + domain[zone...]
        self.isHostOnly = true
        self.path = path
        self.expires = expires
        isSecure = false
        isHTTPOnly = false
        created = Date()
        lastUsed = created
    }

    /// Returns a Boolean value that indicates whether the cookie has expired at the given date.
    package func isExpired(at moment: Date) -> Bool { expires.map { $0 <= moment } ?? false }

    /// The cookie as it appears in a `Cookie` header.
    var pair: String { name.isEmpty ? value : "\(name)=\(value)" }

    /// Whether the cookie can be sent, because a cookie with other characters could insert further headers into a
    /// request.
    var isWritable: Bool { !pair.utf8.contains { $0.isControl && $0 != 0x09 || $0 == UInt8(ascii: ";") } }
}

extension Cookie: CustomStringConvertible {
    /// The name, domain and path of the cookie, without the value, which is a secret.
    public var description: String { "\(name) of \(domain)\(path)".printable() }
}

extension Cookie: CustomReflectable {
    /// A mirror for debuggers and `dump` that does not contain the value, which is a secret.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: ["name": name, "domain": domain, "path": path, "expires": expires as Any, "isSecure": isSecure],
            displayStyle: .struct)
    }
}

/// The limits on the number and size of the cookies in a ``CookieJar``.
package struct CookieLimits: Hashable, Sendable {
    /// The maximum size of a cookie's name and value together, in bytes.
    ///
    /// The default is 4096. The jar rejects larger cookies from servers.
    package var size = 4096
    /// The maximum number of cookies in the jar for each domain.
    ///
    /// The default is 50. The jar removes excess cookies, starting with the least recently used cookies that are not
    /// secure.
    package var perDomain = 50
    /// The maximum number of cookies in the jar.
    ///
    /// The default is 3000. The jar removes excess cookies, starting with the least recently used cookies.
    package var total = 3000
    /// The maximum number of cookies that one response can set.
    ///
    /// The default is 50. The jar rejects the remaining cookies of the response.
    package var perResponse = 50

    /// Creates limits with the default values.
    package init() {}
}
