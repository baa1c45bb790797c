// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Reads the text of a host, and writes IP addresses in their normalized form.
package enum HostName {
    /// Whether it is an IP address, with or without brackets, and with or without a zone.
    package static func isAddress(_ host: String) -> Bool {
        guard host.utf8.first == UInt8(ascii: "[") else { return isIPv4(host) || isIPv6(host) }
        return isIPv6(String(host.dropFirst().dropLast().prefix { $0 != "%" }))
    }

    /// Whether it is an IPv4 address in one of the forms that the system reads.
    package static func isIPv4(_ host: String) -> Bool { ipv4(Array(host.utf8)[...]) != nil }

    /// Whether it is an IPv6 address, without brackets and without a zone.
    package static func isIPv6(_ host: String) -> Bool { ipv6(Array(host.utf8)[...]) != nil }

    /// Returns an IPv4 address as four decimal numbers; nil if the host is not an IPv4 address.
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

    /// Whether each part between the dots is a number.
    ///
    /// Such a host is an IPv4 address, or not a valid host.
    static func isNumeric(_ host: ArraySlice<UInt8>) -> Bool {
        let parts = host.split(separator: UInt8(ascii: "."))
        return !parts.isEmpty
            && parts.allSatisfy { part in
                part.allSatisfy(\.isDigit) || hexadecimalDigits(of: part)?.allSatisfy(\.isHexDigit) ?? false
            }
    }

    /// Returns an IPv6 address in its shortest form, without brackets; nil if the host is not an IPv6 address.
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
