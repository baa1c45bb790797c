// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The authority of a URL (RFC 3986, section 3.2): user information, host and port, with the host in normalized form.
///
/// Everything that is stored for a host uses this type: origins, realms, slots for connections, budgets and pauses of
/// retry, cookies, cached responses, logs and recordings. A second parser could take two spellings of one host for two
/// hosts, and send the token of one realm to another.
///
/// A name with a dot at its end is another host than the name without it, as in browsers and in RFC 6265 for cookies.
/// The system may complete the name without the dot with a search domain, and the two are sent in different `Host`
/// headers.
package struct URLAuthority: Hashable, Sendable {
    /// The reason why a string is not a valid authority.
    package enum Flaw: Error, Hashable, Sendable {
        /// The host is missing.
        case noHost
        /// The host is not valid.
        case host
        /// The port is not a number from 1 to 65535.
        case port
    }

    /// The author of a URL.
    package enum Writer: Sendable {
        /// The user of this library, who may write a host in every way that RFC 3986 allows, and name an interface of
        /// this machine (RFC 6874).
        case user
        /// A server, which percent-encodes a host or gives it a zone only to deceive.
        case server
    }

    /// The text before the at sign as it is written, or `nil` if there is none.
    package let userInformation: String?
    /// The host in lowercase, as a name in ASCII, four decimal numbers, or an IPv6 address in brackets in its shortest
    /// form.
    package let host: String
    /// The port, or `nil` if the text names none.
    package let port: Int?

    /// The default ports of `http` and `https`.
    package static let defaultPorts = ["http": 80, "https": 443]

    /// Parses the text between the two slashes and the path.
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

    /// Returns the origin as the beginning of a URL, without the default port of the scheme.
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

    /// Returns an IPv6 address with its zone, if it has one, in brackets, or `nil` if it is not valid.
    private static func literal(_ text: ArraySlice<UInt8>, _ writer: Writer) -> String? {
        let end = text.firstIndex(of: UInt8(ascii: "%")) ?? text.endIndex
        guard let address = HostName.ipv6(text[..<end]) else { return nil }
        if end == text.endIndex { return "[\(address)]" }
        // RFC 6874 requires an encoded percent sign and the name of an interface, which the system limits to 15
        // characters.
        let zone = text[end...].dropFirst(3)
        guard writer == .user, text[end...].starts(with: "%25".utf8), (1...15).contains(zone.count),
            zone.allSatisfy({ $0.isLetter || $0.isDigit || "-._~".utf8.contains($0) })
        else { return nil }
        return "[\(address)%25\(String(decoding: zone, as: UTF8.self))]"
    }

    /// Returns a name that the Domain Name System can hold, or an IPv4 address, or `nil` if the text is neither.
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

    /// Returns the name in ASCII, in punycode if necessary (RFC 5891), or `nil` if it cannot be converted.
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
    /// The normalized origin of an `http` or `https` URL, or `nil` for any other reference.
    package var origin: String? {
        guard let scheme = scheme?.asciiLowercased, URLAuthority.defaultPorts[scheme] != nil,
            let authority = try? URLAuthority(authority ?? "", writtenBy: .user)
        else { return nil }
        return authority.origin(scheme: scheme)
    }
}

/// A parser of the text of a host, which writes IP addresses in their normalized form.
package enum HostName {
    /// Returns whether a host is an IP address, with or without brackets, and with or without a zone.
    package static func isAddress(_ host: String) -> Bool {
        guard host.utf8.first == UInt8(ascii: "[") else { return isIPv4(host) || isIPv6(host) }
        return isIPv6(String(host.dropFirst().dropLast().prefix { $0 != "%" }))
    }

    /// Returns whether a host is an IPv4 address in one of the forms that the system accepts.
    package static func isIPv4(_ host: String) -> Bool { ipv4(Array(host.utf8)[...]) != nil }

    /// Returns whether a host is an IPv6 address, without brackets and without a zone.
    package static func isIPv6(_ host: String) -> Bool { ipv6(Array(host.utf8)[...]) != nil }

    /// Returns an IPv4 address as four decimal numbers, or `nil` if the host is not an IPv4 address.
    ///
    /// The host may have fewer numbers, of which the last one fills the remaining bytes. The numbers may also be octal
    /// or hexadecimal. For example, `127.1` and `0x7f.1` are `127.0.0.1`.
    static func ipv4(_ host: ArraySlice<UInt8>) -> String? {
        let parts = host.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        let numbers = parts.compactMap { number($0) }
        guard numbers.count == parts.count, numbers.count <= 4, let last = numbers.last,
            last < 1 << UInt64(40 - 8 * numbers.count), numbers.dropLast().allSatisfy({ $0 <= 0xFF })
        else { return nil }
        let address = numbers.dropLast().enumerated().reduce(last) { $0 | $1.element << UInt64(24 - 8 * $1.offset) }
        return [24, 16, 8, 0].map { "\(address >> $0 & 0xFF)" }.joined(separator: ".")
    }

    /// Returns whether each part between the dots is a number.
    ///
    /// Such a host is an IPv4 address, or not a valid host.
    static func isNumeric(_ host: ArraySlice<UInt8>) -> Bool {
        let parts = host.split(separator: UInt8(ascii: "."))
        return !parts.isEmpty
            && parts.allSatisfy { part in
                part.allSatisfy(\.isDigit) || hexadecimalDigits(of: part)?.allSatisfy(\.isHexDigit) ?? false
            }
    }

    /// Returns an IPv6 address in its shortest form, without brackets, or `nil` if the host is not an IPv6 address.
    static func ipv6(_ host: ArraySlice<UInt8>) -> String? {
        let isPossible = host.allSatisfy { $0.isHexDigit || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") }
        guard isPossible, host.count <= 45 else { return nil }
        var address = in6_addr()
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard inet_pton(AF_INET6, String(decoding: host, as: UTF8.self), &address) == 1,
            inet_ntop(AF_INET6, &address, &text, socklen_t(text.count)) != nil
        else { return nil }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Reads a number as C does: decimal, octal after `0`, or hexadecimal after `0x`.
    private static func number(_ part: ArraySlice<UInt8>) -> UInt64? {
        if let digits = hexadecimalDigits(of: part) { return number(digits, radix: 16) }
        return number(part, radix: part.count > 1 && part.first == UInt8(ascii: "0") ? 8 : 10)
    }

    private static func number(_ digits: ArraySlice<UInt8>, radix: Int) -> UInt64? {
        // The standard library would accept a sign.
        guard digits.allSatisfy(\.isHexDigit) else { return nil }
        return UInt64(String(decoding: digits, as: UTF8.self), radix: radix)
    }

    private static func hexadecimalDigits(of part: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        let rest = part.dropFirst(2)
        guard part.first == UInt8(ascii: "0"), part.count >= 2, part[rest.startIndex - 1] | 0x20 == UInt8(ascii: "x")
        else { return nil }
        return rest
    }
}

/// An absolute or relative reference to a resource, which is parsed and resolved as RFC 3986 specifies.
///
/// Foundation resolves some references incorrectly on Linux and crashes on others. This implementation cannot fail.
package struct AddressReference: Hashable, Sendable {
    package var scheme: String?
    package var authority: String?
    package var path: String
    package var query: String?
    package var fragment: String?

    /// Parses a string, which is always a valid reference (RFC 3986, appendix B).
    package init(_ text: String) {
        var rest = Array(text.utf8)[...]
        fragment = Self.cut(&rest, at: UInt8(ascii: "#"))
        query = Self.cut(&rest, at: UInt8(ascii: "?"))
        if let colon = rest.firstIndex(of: UInt8(ascii: ":")), Self.isScheme(rest[..<colon]) {
            scheme = String(decoding: rest[..<colon], as: UTF8.self)
            rest = rest[(colon + 1)...]
        }
        if rest.starts(with: "//".utf8) {
            rest = rest.dropFirst(2)
            let end = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
            authority = String(decoding: rest[..<end], as: UTF8.self)
            rest = rest[end...]
        }
        path = String(decoding: rest, as: UTF8.self)
    }

    /// Returns the reference resolved against the address of the resource in which it was found (section 5.2.2).
    package func resolved(against base: AddressReference) -> AddressReference {
        var target = self
        guard scheme == nil else {
            target.path = Self.withoutDotSegments(path)
            return target
        }
        target.scheme = base.scheme
        if authority != nil {
            target.path = Self.withoutDotSegments(path)
            return target
        }
        target.authority = base.authority
        if path.isEmpty {
            target.path = base.path
            target.query = query ?? base.query
        } else if path.utf8.first == UInt8(ascii: "/") {
            target.path = Self.withoutDotSegments(path)
        } else {
            target.path = Self.withoutDotSegments(base.merging(path))
        }
        return target
    }

    /// Returns the path with everything after its last slash replaced by a relative path (section 5.2.3).
    private func merging(_ relative: String) -> String {
        if authority != nil, path.isEmpty { return "/" + relative }
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return relative }
        return String(path[...slash]) + relative
    }

    /// Returns a path with its `.` and `..` segments resolved (section 5.2.4).
    package static func withoutDotSegments(_ path: String) -> String {
        let slash = UInt8(ascii: "/")
        var input = Array(path.utf8)[...]
        var output: [UInt8] = []
        func leaveSegment() {
            output.removeLast(output.count - (output.lastIndex(of: slash) ?? 0))
        }
        while !input.isEmpty {
            if input.starts(with: "../".utf8) {
                input = input.dropFirst(3)
            } else if input.starts(with: "./".utf8) || input.starts(with: "/./".utf8) {
                input = input.dropFirst(2)
            } else if input.elementsEqual("/.".utf8) {
                input = [slash]
            } else if input.starts(with: "/../".utf8) {
                input = input.dropFirst(3)
                leaveSegment()
            } else if input.elementsEqual("/..".utf8) {
                input = [slash]
                leaveSegment()
            } else if input.elementsEqual(".".utf8) || input.elementsEqual("..".utf8) {
                input = []
            } else {
                let end = input.dropFirst().firstIndex(of: slash) ?? input.endIndex
                output += input[..<end]
                input = input[end...]
            }
        }
        return String(decoding: output, as: UTF8.self)
    }

    /// Removes the first occurrence of a byte and everything after it, and returns the text after the byte.
    private static func cut(_ bytes: inout ArraySlice<UInt8>, at mark: UInt8) -> String? {
        guard let index = bytes.firstIndex(of: mark) else { return nil }
        defer { bytes = bytes[..<index] }
        return String(decoding: bytes[(index + 1)...], as: UTF8.self)
    }

    private static func isScheme(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard let first = bytes.first, first.isLetter else { return false }
        return bytes.allSatisfy { $0.isLetter || $0.isDigit || "+-.".utf8.contains($0) }
    }
}
