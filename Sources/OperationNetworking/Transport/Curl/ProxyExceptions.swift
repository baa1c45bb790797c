// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation

    /// Hosts that are reached without the proxy, as libcurl reads the list of them: names with all that is below them,
    /// addresses, ranges of addresses (`10.0.0.0/8`), or an asterisk for all.
    struct ProxyExceptions {
        private let hosts: [String]
        private let isForAll: Bool

        init(_ list: String) {
            isForAll = list == "*"
            hosts = list.lowercased().split { $0 == "," || $0 == " " || $0 == "\t" }.map { String($0) }
        }

        /// Whether a host, in small letters and without brackets, is one of them.
        func contain(_ host: String) -> Bool {
            if isForAll { return true }
            guard !hosts.isEmpty else { return false }
            if let address = Self.bytes(host) {
                return hosts.contains { Self.covers($0, address) }
            }
            let name = host.hasSuffix(".") ? host.dropLast() : host[...]
            return hosts.contains { exception in
                var domain = exception[...]
                if domain.hasSuffix(".") { domain = domain.dropLast() }
                if domain.hasPrefix(".") { domain = domain.dropFirst() }
                return !domain.isEmpty && (name == domain || name.hasSuffix(".\(domain)"))
            }
        }

        private static func covers(_ range: String, _ address: [UInt8]) -> Bool {
            let parts = range.split(separator: "/", maxSplits: 1)
            guard let first = parts.first, let network = bytes(String(first)), network.count == address.count else {
                return false
            }
            let all = address.count * 8
            let given = parts.count > 1 ? Int(parts[1]) ?? 0 : 0
            let count = given == 0 ? all : given
            guard (0...all).contains(count) else { return false }
            return (0..<count).allSatisfy { bit in
                (network[bit / 8] ^ address[bit / 8]) & (0x80 >> UInt8(bit % 8)) == 0
            }
        }

        /// The bytes of an address; nil if it is a name.
        private static func bytes(_ text: String) -> [UInt8]? {
            for (family, count) in [(AF_INET, 4), (AF_INET6, 16)] {
                var address = [UInt8](repeating: 0, count: count)
                if inet_pton(family, text, &address) == 1 { return address }
            }
            return nil
        }
    }
#endif
