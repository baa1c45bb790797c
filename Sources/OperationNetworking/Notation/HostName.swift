// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What a host's name tells about it.
package enum HostName {
    /// Whether it is an address by number, with or without brackets.
    package static func isAddress(_ host: String) -> Bool {
        if host.utf8.first == UInt8(ascii: "[") { return isIPv6(String(host.dropFirst().dropLast())) }
        return isIPv4(host) || isIPv6(host)
    }

    /// Whether it is four numbers, or one of the shorter forms that the system reads as an IPv4 address.
    package static func isIPv4(_ host: String) -> Bool {
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        guard (1...4).contains(parts.count), let last = parts.last else { return false }
        // A name whose last label is a number is no name (the URL standard's rule).
        return last.utf8.first.map(\.isDigit) == true
            && parts.allSatisfy { part in
                part.hasPrefix("0x") || part.hasPrefix("0X")
                    ? part.dropFirst(2).utf8.allSatisfy(\.isHexDigit)
                    : !part.isEmpty && part.utf8.allSatisfy(\.isDigit)
            }
    }

    /// Whether it is an IPv6 address, without brackets and without a zone.
    package static func isIPv6(_ host: String) -> Bool {
        guard host.utf8.allSatisfy({ $0.isHexDigit || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") }),
            host.utf8.count <= 45
        else { return false }
        var address = in6_addr()
        return inet_pton(AF_INET6, host, &address) == 1
    }
}
