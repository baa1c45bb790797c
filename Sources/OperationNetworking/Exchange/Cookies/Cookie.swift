// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A cookie: what a server asked to be sent back to it.
public struct Cookie: Hashable, Sendable, Codable {
    /// Whether a cookie goes along with requests that another site caused.
    ///
    /// A program that is no browser has no other sites: the attribute is kept for whoever looks at the jar, and changes
    /// nothing in what is sent.
    ///
    /// No case will be added.
    public enum SameSite: String, Sendable, Codable {
        /// Only with requests that its own site caused.
        case strict
        /// Also where the user followed a link to the site.
        case lax
        /// With all requests.
        case none
    }

    /// The name; empty for a value without one.
    public var name: String
    /// The value, with quotation marks if it came with such.
    public var value: String
    /// The host, or the domain with all hosts in it, in lower case.
    public var domain: String
    /// Whether it goes to that very host only, not to others in the domain.
    public var isHostOnly: Bool
    /// The path under which it is sent.
    public var path: String
    /// When it ends; nil if with the session.
    public var expires: Date?
    /// Whether it is sent over encrypted connections only.
    public var isSecure: Bool
    /// Whether scripts in pages may not see it.
    public var isHTTPOnly: Bool
    /// What the server said about other sites; nil if nothing.
    public var sameSite: SameSite?
    /// When it was set first.
    public var created: Date
    /// When it was last sent or set.
    public var lastUsed: Date

    /// Makes a cookie of your own.
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - value: The value.
    ///   - domain: The host that gets it.
    ///   - path: The path under which it is sent.
    ///   - expires: When it ends; nil for the end of the session.
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

    /// Whether it is over at that moment.
    public func isExpired(at moment: Date) -> Bool { expires.map { $0 <= moment } ?? false }

    /// The cookie as it stands in a request.
    var pair: String { name.isEmpty ? value : "\(name)=\(value)" }

    /// Whether it can stand in a request: else one made by hand could bring further fields with it.
    var isWritable: Bool { !pair.utf8.contains { $0.isControl && $0 != 0x09 || $0 == UInt8(ascii: ";") } }
}

extension Cookie: CustomStringConvertible {
    /// Name, domain and path; never the value, which is a secret.
    public var description: String { "\(name) of \(domain)\(path)".printable() }
}

extension Cookie: CustomReflectable {
    /// What debuggers and `dump` show: never the value, which is a secret.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: ["name": name, "domain": domain, "path": path, "expires": expires as Any, "isSecure": isSecure],
            displayStyle: .struct)
    }
}
