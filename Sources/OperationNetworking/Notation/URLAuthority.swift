// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The authority of a URL (RFC 3986, section 3.2): user information, host and port, with the host in normalized form.
///
/// Everything that is stored for a host uses this type: origins, realms, slots for connections, budgets and pauses of
/// retry, cookies, cached responses, logs and recordings. A second parser could take two spellings of one host for two
/// hosts, and send the token of one realm to another.
///
/// A name with a dot at its end is another host than the name without it, as in browsers (and in RFC 6265 for cookies):
/// the system may complete the name without the dot by a search domain, and the two are sent in different `Host` fields.
package struct URLAuthority: Hashable, Sendable {
    /// The reason why a text is not a valid authority.
    package enum Flaw: Error, Hashable, Sendable {
        /// The host is missing.
        case noHost
        /// The host is not valid.
        case host
        /// The port is not a number from 1 to 65535.
        case port
    }

    /// Who wrote the URL.
    package enum Writer: Sendable {
        /// The user of this library, who may write a host in every way that RFC 3986 allows, and name an interface of
        /// this machine (RFC 6874).
        case user
        /// A server. It only percent-encodes a host, or gives it a zone, to deceive.
        case server
    }

    /// The text before the at sign, as it is written; nil if there is none.
    package let userInformation: String?
    /// The host in lower case: a name in ASCII, four decimal numbers, or an IPv6 address in brackets in its shortest form.
    package let host: String
    /// The port; nil if none is named.
    package let port: Int?

    /// The default ports of `http` and `https`.
    package static let defaultPorts = ["http": 80, "https": 443]

    /// Reads the text between the two slashes and the path.
    package init(_ text: String, writtenBy writer: Writer) throws(Flaw) {
        var rest = Array(text.utf8)[...]
        if let at = rest.lastIndex(of: UInt8(ascii: "@")) {
            // With two at signs it is unclear where the host begins, and parsers disagree.
            guard rest.firstIndex(of: UInt8(ascii: "@")) == at else { throw .host }
            userInformation = String(decoding: rest[..<at], as: UTF8.self)
            rest = rest[(at + 1)...]
        } else {
            userInformation = nil
        }
        let isLiteral = rest.first == UInt8(ascii: "[")
        let mark = UInt8(ascii: isLiteral ? "]" : ":")
        let markIndex = rest.firstIndex(of: mark)
        guard !isLiteral || markIndex != nil else { throw .host }
        let hostEnd = markIndex.map { isLiteral ? $0 + 1 : $0 } ?? rest.endIndex
        let (written, port) = (rest[..<hostEnd], rest[hostEnd...])
        guard port.isEmpty || port.first == UInt8(ascii: ":") else { throw .host }
        self.port = try Self.port(port.dropFirst())
        guard !written.isEmpty else { throw .noHost }
        let host = isLiteral ? Self.literal(written.dropFirst().dropLast(), writer) : Self.name(written, writer)
        guard let host else { throw .host }
        self.host = host
    }

    /// Returns the origin as it stands at the beginning of a URL, without the default port of the scheme.
    package func origin(scheme: String) -> String {
        Self.origin(scheme: scheme, host: host, port: port ?? Self.defaultPorts[scheme])
    }

    package static func origin(scheme: String, host: String, port: Int?) -> String {
        guard let port, port != defaultPorts[scheme] else { return "\(scheme)://\(host)" }
        return "\(scheme)://\(host):\(port)"
    }

    private static func port(_ digits: ArraySlice<UInt8>) throws(Flaw) -> Int? {
        if digits.isEmpty { return nil }
        guard digits.allSatisfy(\.isDigit), let port = UInt16(String(decoding: digits, as: UTF8.self)), port > 0 else {
            throw .port
        }
        return Int(port)
    }

    /// Returns an IPv6 address with its zone, if it has one, in brackets; nil if it is not valid.
    private static func literal(_ text: ArraySlice<UInt8>, _ writer: Writer) -> String? {
        let end = text.firstIndex(of: UInt8(ascii: "%")) ?? text.endIndex
        guard let address = HostName.ipv6(text[..<end]) else { return nil }
        if end == text.endIndex { return "[\(address)]" }
        // RFC 6874: a percent sign, encoded, and the name of an interface, which the system limits to 15 characters.
        let zone = text[end...].dropFirst(3)
        guard writer == .user, text[end...].starts(with: "%25".utf8), (1...15).contains(zone.count),
            zone.allSatisfy({ $0.isLetter || $0.isDigit || "-._~".utf8.contains($0) })
        else { return nil }
        return "[\(address)%25\(String(decoding: zone, as: UTF8.self))]"
    }

    /// Returns a name that the Domain Name System can hold, or an IPv4 address; nil if the text is neither.
    private static func name(_ text: ArraySlice<UInt8>, _ writer: Writer) -> String? {
        var name = text
        if writer == .user {
            guard let ascii = asciiName(Hexadecimal.percentDecoded(text)) else { return nil }
            name = ascii
        }
        if let address = HostName.ipv4(name) { return address }
        guard !name.isEmpty, name.count <= 255, name.first != UInt8(ascii: "."), name.allSatisfy(isOfName),
            !HostName.isNumeric(name)
        else { return nil }
        return String(decoding: name, as: UTF8.self).asciiLowercased
    }

    /// Returns the name in ASCII, in punycode if necessary (RFC 5891); nil if it cannot be converted.
    private static func asciiName(_ bytes: [UInt8]) -> ArraySlice<UInt8>? {
        if bytes.allSatisfy({ $0 < 0x80 }) { return bytes[...] }
        // Foundation converts the host of a URL.
        guard bytes.allSatisfy({ $0 >= 0x80 || isOfName($0) }), let name = String(bytes: bytes, encoding: .utf8),
            let text = URL(string: "http://\(name)/")?.absoluteString, text.hasPrefix("http://"), text.hasSuffix("/")
        else { return nil }
        return Array(text.utf8)[7...].dropLast()
    }

    private static func isOfName(_ byte: UInt8) -> Bool {
        byte.isLetter || byte.isDigit || "-._~".utf8.contains(byte)
    }
}

extension AddressReference {
    /// The normalized origin of an `http` or `https` URL; nil for anything else.
    package var origin: String? {
        guard let scheme = scheme?.asciiLowercased, URLAuthority.defaultPorts[scheme] != nil,
            let authority = try? URLAuthority(authority ?? "", writtenBy: .user)
        else { return nil }
        return authority.origin(scheme: scheme)
    }
}
