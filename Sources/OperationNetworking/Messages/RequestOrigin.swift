// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The scheme, the host and the port of a request, which determine the connections that it can share.
///
/// The text of the origin is the beginning of the URL that is sent. See ``NetworkRequest/url``.
package struct RequestOrigin: Sendable, Hashable {
    /// The origin as it is written in a URL, in the normalized form of `URLAuthority`.
    package let name: String

    /// Whether the scheme is `https`.
    package var isSecure: Bool { name.utf8.dropFirst(4).first == UInt8(ascii: "s") }

    init(scheme: String, _ authority: URLAuthority) {
        name = authority.origin(scheme: scheme)
    }

    /// Creates the origin of a URL, or returns `nil` if no request can be sent to the URL.
    package init?(of url: URL) {
        let text = url.absoluteString
        if let origin = RequestOrigin(ofPlain: text) {
            self = origin
        } else {
            guard let name = AddressReference(text).origin else { return nil }
            self.name = name
        }
    }

    /// Creates the origin of a URL that is already normalized, or returns `nil` if the URL needs the full parser.
    ///
    /// For most requests, this initializer avoids the cost of parsing the URL.
    package init?(ofPlain text: String) {
        var text = text
        guard let name = text.withUTF8({ Self.plainName(UnsafeRawBufferPointer($0)) }) else { return nil }
        self.name = name
    }

    /// The host without brackets, the zone of an IPv6 address, and the port.
    package var place: (host: String, zone: String?, port: Int) {
        let authority = name.utf8.dropFirst(isSecure ? 8 : 7)
        let isLiteral = authority.first == UInt8(ascii: "[")
        let end = authority.firstIndex(of: UInt8(ascii: isLiteral ? "]" : ":")) ?? authority.endIndex
        let host = authority[..<end].dropFirst(isLiteral ? 1 : 0)
        let digits = authority[end...].dropFirst(isLiteral ? 2 : 1)
        let zone = host.firstIndex(of: UInt8(ascii: "%")) ?? host.endIndex
        return (
            String(Substring(host[..<zone])),
            zone == host.endIndex ? nil : String(Substring(host[zone...].dropFirst(3))),
            Int(Substring(digits)) ?? (isSecure ? 443 : 80)
        )
    }
}

// The scheme, the host and the port of a URL that is already normalized, as bytes.
extension RequestOrigin {
    /// Returns the text of a URL up to the end of its host or port, or `nil` if the URL needs the full parser.
    private static func plainName(_ bytes: UnsafeRawBufferPointer) -> String? {
        let isSecure = bytes.begins(with: "https://")
        guard isSecure || bytes.begins(with: "http://") else { return nil }
        let start = isSecure ? 8 : 7
        guard let hostEnd = Self.hostEnd(of: bytes, from: start),
            let end = Self.portEnd(of: bytes, from: hostEnd, usualPort: isSecure ? 443 : 80),
            end == bytes.count || bytes[end] == 0x2F || bytes[end] == 0x3F,
            bytes[end...].allSatisfy({ (0x21...0x7E).contains($0) && $0 != 0x23 })
        else { return nil }
        return String(decoding: UnsafeRawBufferPointer(rebasing: bytes[..<end]), as: UTF8.self)
    }

    /// Returns the end of a host that is already normalized, or `nil` if the host needs the full parser.
    private static func hostEnd(of bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
        var (end, label) = (start, start)
        scan: while end < bytes.count {
            switch bytes[end] {
            case 0x30...0x39, 0x61...0x7A, 0x2D, 0x5F, 0x7E: break
            case 0x2E: label = end + 1
            default: break scan
            }
            end += 1
        }
        guard label < end, end - start <= 255, bytes[start] != 0x2E else { return nil }
        // If the last part begins with a digit, the host may be an IPv4 address in some form.
        if bytes[label].isDigit, !isIPv4(bytes[start..<end]) { return nil }
        return end
    }

    /// Returns whether the host consists of four decimal numbers.
    private static func isIPv4(_ host: Slice<UnsafeRawBufferPointer>) -> Bool {
        var (parts, number, digits) = (1, 0, 0)
        for byte in host {
            if byte == 0x2E {
                guard digits > 0, parts < 4 else { return false }
                (parts, number, digits) = (parts + 1, 0, 0)
            } else {
                guard byte.isDigit, digits == 0 || number > 0 else { return false }
                (number, digits) = (number * 10 + Int(byte) - 0x30, digits + 1)
                guard number <= 255 else { return false }
            }
        }
        return parts == 4 && digits > 0
    }

    /// Returns the end of the port, or of the host if there is no port, or `nil` if the port needs the full parser.
    private static func portEnd(of bytes: UnsafeRawBufferPointer, from hostEnd: Int, usualPort: Int) -> Int? {
        guard hostEnd < bytes.count, bytes[hostEnd] == 0x3A else { return hostEnd }
        var (number, end) = (0, hostEnd + 1)
        while end < bytes.count, bytes[end].isDigit, number <= 65535 {
            // A normalized port has no leading zeros.
            guard number > 0 || bytes[end] != 0x30 else { return nil }
            number = number * 10 + Int(bytes[end]) - 0x30
            end += 1
        }
        guard (1...65535).contains(number), number != usualPort else { return nil }
        return end
    }
}
