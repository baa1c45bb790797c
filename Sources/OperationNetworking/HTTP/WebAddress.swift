// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The absolute address of a web resource, whose text was checked and can be part of a request unchanged.
package struct WebAddress: Hashable, Sendable {
    package let origin: WebOrigin
    /// The path, which contains at least a slash.
    package let path: String
    package let query: String?
    package let fragment: String?
    /// Whether the original address had a user name or a password, which are left out.
    package let hadUserInformation: Bool

    /// The reason why a string is not a valid address.
    package enum Flaw: Error, Hashable, Sendable {
        /// The text contains control characters.
        case badCharacters
        /// The scheme is neither `http` nor `https`.
        case scheme(String)
        /// The host is missing or not valid.
        case host
        /// The port is not a number from 1 to 65535.
        case port
    }

    /// Parses an absolute address.
    package init(_ text: String) throws(Flaw) {
        try self.init(AddressReference(Self.checked(text)), writtenBy: .user)
    }

    /// Resolves a reference that was found at `base`, whose fragment is kept if the reference has none.
    package init(_ text: String, foundAt base: WebAddress) throws(Flaw) {
        let reference = AddressReference(try Self.checked(text))
        var target = reference.resolved(against: base.reference)
        target.fragment = reference.fragment ?? base.fragment
        let isNamedAgain = base.isNamedWithoutZone(by: target)
        if isNamedAgain { target.authority = base.reference.authority }
        // The authority of the base was checked when the base was made.
        try self.init(target, writtenBy: reference.authority == nil || isNamedAgain ? .user : .server)
    }

    /// Returns whether a reference names the scheme, host and port of this address, but without the zone of its IPv6
    /// address.
    ///
    /// A server does not know the zone, which names an interface of this computer.
    private func isNamedWithoutZone(by target: AddressReference) -> Bool {
        guard let zone = origin.host.firstIndex(of: "%"), let scheme = target.scheme?.asciiLowercased,
            let authority = try? URLAuthority(target.authority ?? "", writtenBy: .server),
            authority.userInformation == nil, let port = authority.port ?? URLAuthority.defaultPorts[scheme]
        else { return false }
        return authority.host == origin.host[..<zone] + "]" && scheme == origin.scheme && port == origin.port
    }

    /// Creates the address of a request, whose URL was checked when the request was created.
    package init(of request: NetworkRequest) {
        let (text, name) = (request.url.absoluteString, request.origin.name.utf8)
        let target = text.utf8.dropFirst(name.count)
        // Most URLs need no parser.
        let isPlain = !name.contains(UInt8(ascii: "[")) && target.allSatisfy { Self.isPlain($0) }
        if !isPlain, let address = WebAddress(request.url) {
            self = address
            return
        }
        let place = request.origin.place
        let end = target.firstIndex(of: UInt8(ascii: "?")) ?? target.endIndex
        self.init(
            WebOrigin(scheme: request.origin.isSecure ? "https" : "http", host: place.host, port: place.port),
            path: end == target.startIndex ? "/" : String(Substring(target[..<end])),
            query: end == target.endIndex ? nil : String(Substring(target[end...].dropFirst())))
    }

    private init(_ origin: WebOrigin, path: String, query: String?) {
        (self.origin, self.path, self.query) = (origin, path, query)
        (fragment, hadUserInformation) = (nil, false)
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

    /// The address without its fragment, which identifies a resource.
    package var resource: String { origin.description + target }

    /// The path and query, as in the first line of a request.
    package var target: String { path + (query.map { "?" + $0 } ?? "") }

    /// The whole address with its fragment.
    package var text: String { resource + (fragment.map { "#" + $0 } ?? "") }

    /// The address as a URL of Foundation.
    package var url: URL? { URL(string: text) }

    private var reference: AddressReference { AddressReference(text) }

    private static func checked(_ text: String) throws(Flaw) -> String {
        let text = text.trimmedBlanks
        guard !text.utf8.contains(where: \.isControl) else { throw .badCharacters }
        return text
    }

    /// Whether each byte may appear unescaped in a path, a query or a fragment.
    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        // These are the letters, the digits and -._~!$&'()*+,;=:@/?
        case 0x21, 0x24, 0x26...0x3B, 0x3D, 0x3F...0x5A, 0x5F, 0x61...0x7A, 0x7E: true
        default: false
        }
    }

    /// Percent-encodes the bytes that may not appear in an address, and keeps existing escapes.
    private static func escaped(_ text: String) -> String {
        // Most texts need no escapes.
        if text.utf8.allSatisfy({ isPlain($0) }) { return text }
        let bytes = Array(text.utf8)
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        for (index, byte) in bytes.enumerated() {
            let isEscape =
                byte == UInt8(ascii: "%") && index + 2 < bytes.count && bytes[index + 1].isHexDigit
                && bytes[index + 2].isHexDigit
            if isEscape || isPlain(byte) {
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
    /// Creates an address from a URL, or returns `nil` if the URL is not a valid web address.
    package init?(_ url: URL) {
        guard let address = try? WebAddress(url.absoluteString) else { return nil }
        self = address
    }
}

/// The origin of a URL, which consists of the scheme, host and port.
public struct WebOrigin: Hashable, Sendable, CustomStringConvertible {
    /// The scheme of the URL, which is `http` or `https`.
    package let scheme: String
    /// The host of the URL in lowercase, with non-ASCII characters encoded in Punycode (`xn--`).
    ///
    /// An IPv4 address consists of four decimal numbers. An IPv6 address is in brackets and in its shortest form.
    package let host: String
    /// The port of the URL, or the default port of the scheme if the URL contains no port.
    package let port: Int

    init(scheme: String, host: String, port: Int) {
        self.scheme = scheme
        self.host = host
        self.port = port
    }

    /// Creates the origin of a URL, or returns `nil` if the URL is not a valid `http` or `https` URL.
    public init?(_ url: URL) {
        guard let address = WebAddress(url) else { return nil }
        self = address.origin
    }

    /// A Boolean value that indicates whether connections to the origin are encrypted.
    package var isSecure: Bool { scheme == "https" }

    /// The scheme, host and port in the form of a URL, without the default port of the scheme.
    public var description: String { URLAuthority.origin(scheme: scheme, host: host, port: port) }
}
