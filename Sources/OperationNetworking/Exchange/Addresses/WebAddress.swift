// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The address of a resource on the web, absolute and checked: its text can go into a request as it is.
package struct WebAddress: Hashable, Sendable {
    package let origin: WebOrigin
    /// The path, a slash at least.
    package let path: String
    package let query: String?
    package let fragment: String?
    /// Whether it came with a user's name or password, which were left out.
    package let hadUserInformation: Bool

    /// Why a reference is none.
    package enum Flaw: Error, Hashable, Sendable {
        /// It has characters that no address has.
        case badCharacters
        /// It is of another scheme.
        case scheme(String)
        /// It has no host, or one that cannot be.
        case host
        /// The port is no number from 1 to 65535.
        case port
    }

    /// Checks an absolute address.
    package init(_ text: String) throws(Flaw) {
        try self.init(AddressReference(Self.checked(text)))
    }

    /// Finds out what a reference means that was found at `base`, the fragment carried over where it has none.
    package init(_ text: String, foundAt base: WebAddress) throws(Flaw) {
        let reference = AddressReference(try Self.checked(text))
        var target = reference.resolved(against: base.reference)
        target.fragment = reference.fragment ?? base.fragment
        try self.init(target)
    }

    private init(_ reference: AddressReference) throws(Flaw) {
        let scheme = (reference.scheme ?? "").asciiLowercased
        guard let defaultPort = WebOrigin.defaultPorts[scheme] else { throw .scheme(scheme) }
        var authority = Array((reference.authority ?? "").utf8)[...]
        if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
            hadUserInformation = true
            authority = authority[(at + 1)...]
        } else {
            hadUserInformation = false
        }
        let (host, port) = try Self.hostAndPort(authority)
        origin = WebOrigin(scheme: scheme, host: host, port: port ?? defaultPort)
        let path = Self.escaped(reference.path)
        self.path = path.isEmpty ? "/" : path
        query = reference.query.map(Self.escaped)
        fragment = reference.fragment.map(Self.escaped)
    }

    /// The address without its fragment: what tells one resource from another.
    package var resource: String { origin.description + target }

    /// Path and query: what stands in the first line of a request.
    package var target: String { path + (query.map { "?" + $0 } ?? "") }

    /// The whole address.
    package var text: String { resource + (fragment.map { "#" + $0 } ?? "") }

    /// The address for Foundation.
    package var url: URL? { URL(string: text) }

    private var reference: AddressReference { AddressReference(text) }

    private static func checked(_ text: String) throws(Flaw) -> String {
        let text = text.trimmedBlanks
        guard !text.utf8.contains(where: \.isControl) else { throw .badCharacters }
        return text
    }

    private static func hostAndPort(_ authority: ArraySlice<UInt8>) throws(Flaw) -> (String, Int?) {
        var end = authority.endIndex
        var port: Int?
        let isLiteral = authority.first == UInt8(ascii: "[")
        let hostEnd =
            isLiteral
            ? authority.firstIndex(of: UInt8(ascii: "]")).map { $0 + 1 }
            : authority.firstIndex(of: UInt8(ascii: ":")) ?? authority.endIndex
        guard let hostEnd else { throw .host }
        if hostEnd < authority.endIndex {
            guard authority[hostEnd] == UInt8(ascii: ":") else { throw .host }
            port = try Self.port(authority[(hostEnd + 1)...])
            end = hostEnd
        }
        let host = authority[..<end]
        guard isLiteral ? isLiteralAddress(host.dropFirst().dropLast()) : isName(host) else { throw .host }
        return (String(decoding: host, as: UTF8.self).asciiLowercased, port)
    }

    private static func port(_ digits: ArraySlice<UInt8>) throws(Flaw) -> Int? {
        if digits.isEmpty { return nil }
        guard digits.count <= 5, digits.allSatisfy(\.isDigit) else { throw .port }
        let port = digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        guard (1...65535).contains(port) else { throw .port }
        return port
    }

    /// Names that the Domain Name System can hold: what else RFC 3986 allows only serves to deceive.
    private static func isName(_ host: ArraySlice<UInt8>) -> Bool {
        !host.isEmpty && host.count <= 255 && host.first != UInt8(ascii: ".")
            && host.allSatisfy { $0.isLetter || $0.isDigit || "-._".utf8.contains($0) }
    }

    private static func isLiteralAddress(_ host: ArraySlice<UInt8>) -> Bool {
        HostName.isIPv6(String(decoding: host, as: UTF8.self))
    }

    /// Whether a byte may stand in a path, a query or a fragment as it is.
    private static let isPlain: [Bool] = (0...255).map { byte in
        let byte = UInt8(byte)
        return byte.isLetter || byte.isDigit || "-._~!$&'()*+,;=:@/?".utf8.contains(byte)
    }

    /// Writes what may not stand in an address as the bytes that it is; escapes stay as they are.
    private static func escaped(_ text: String) -> String {
        // Mostly there is nothing to escape.
        if text.utf8.allSatisfy({ isPlain[Int($0)] }) { return text }
        let bytes = Array(text.utf8)
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        for (index, byte) in bytes.enumerated() {
            let isEscape =
                byte == UInt8(ascii: "%") && index + 2 < bytes.count && bytes[index + 1].isHexDigit
                && bytes[index + 2].isHexDigit
            if isEscape || isPlain[Int(byte)] {
                result.append(byte)
            } else {
                result.append(UInt8(ascii: "%"))
                result += Hexadecimal.upper(byte)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }
}

extension WebAddress {
    /// The address that a URL names, if it is one on the web.
    package init?(_ url: URL) {
        guard let address = try? WebAddress(url.absoluteString) else { return nil }
        self = address
    }
}
