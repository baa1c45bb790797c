// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Which cookies belong to which requests (RFC 6265bis, sections 5.1.3 and 5.1.4).
package enum CookieMatching {
    /// Whether a host is a domain, or lies in it.
    package static func isHost(_ host: String, in domain: String) -> Bool {
        if host == domain { return true }
        return !domain.isEmpty && host.hasSuffix("." + domain) && !HostName.isAddress(host)
    }

    /// Whether a path is another one, or lies under it.
    package static func isPath(_ path: String, under prefix: String) -> Bool {
        guard path.utf8.starts(with: prefix.utf8) else { return false }
        return path.utf8.count == prefix.utf8.count || prefix.utf8.last == UInt8(ascii: "/")
            || path.utf8.dropFirst(prefix.utf8.count).first == UInt8(ascii: "/")
    }

    /// The path of a cookie that names none, from the path of the request to which it is an answer.
    package static func defaultPath(of path: String) -> String {
        guard path.hasPrefix("/"), let last = path.utf8.lastIndex(of: UInt8(ascii: "/")), last != path.startIndex else {
            return "/"
        }
        return String(path[..<last])
    }

    /// The host, and the domains in which it lies.
    package static func domains(of host: String) -> [String] {
        guard !HostName.isAddress(host) else { return [host] }
        var domains = [host]
        var rest = host[...]
        while let dot = rest.firstIndex(of: ".") {
            rest = rest[rest.index(after: dot)...]
            if !rest.isEmpty { domains.append(String(rest)) }
        }
        return domains
    }
}
