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
        try self.init(AddressReference(Self.checked(text)), writtenBy: .user)
    }

    /// Finds out what a reference means that was found at `base`, the fragment carried over where it has none.
    package init(_ text: String, foundAt base: WebAddress) throws(Flaw) {
        let reference = AddressReference(try Self.checked(text))
        var target = reference.resolved(against: base.reference)
        target.fragment = reference.fragment ?? base.fragment
        let isNamedAgain = base.isNamedWithoutZone(by: target)
        if isNamedAgain { target.authority = base.reference.authority }
        // The authority of the base was checked when the base was made.
        try self.init(target, writtenBy: reference.authority == nil || isNamedAgain ? .user : .server)
    }

    /// Returns whether a server named this scheme, host and port, but for the zone of an IPv6 address, which it does not
    /// know: the zone names an interface of this computer.
    private func isNamedWithoutZone(by target: AddressReference) -> Bool {
        guard let zone = origin.host.firstIndex(of: "%"), let scheme = target.scheme?.asciiLowercased,
            let authority = try? URLAuthority(target.authority ?? "", writtenBy: .server),
            authority.userInformation == nil, let port = authority.port ?? URLAuthority.defaultPorts[scheme]
        else { return false }
        return authority.host == origin.host[..<zone] + "]" && scheme == origin.scheme && port == origin.port
    }

    private init(_ reference: AddressReference, writtenBy writer: URLAuthority.Writer) throws(Flaw) {
        let scheme = (reference.scheme ?? "").asciiLowercased
        guard let defaultPort = URLAuthority.defaultPorts[scheme] else { throw .scheme(scheme) }
        let authority: URLAuthority
        do {
            authority = try URLAuthority(reference.authority ?? "", writtenBy: writer)
        } catch {
            throw error == .port ? .port : .host
        }
        hadUserInformation = authority.userInformation != nil
        origin = WebOrigin(scheme: scheme, host: authority.host, port: authority.port ?? defaultPort)
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
