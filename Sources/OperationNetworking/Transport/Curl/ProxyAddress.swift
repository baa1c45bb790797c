// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    /// Where a proxy is, as libcurl reads its URL.
    struct ProxyAddress {
        let host: String
        let port: Int
        /// Whether requests without TLS are handed to it as they are; one of SOCKS only passes bytes on.
        let takesRequests: Bool

        /// Nil if it is no address.
        init?(_ url: String) {
            var rest = url[...]
            var scheme = "http"
            if let mark = rest.firstRange(of: "://") {
                scheme = rest[..<mark.lowerBound].lowercased()
                rest = rest[mark.upperBound...]
            }
            rest = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
            if let at = rest.lastIndex(of: "@") { rest = rest[rest.index(after: at)...] }
            let place = HostAndPort(rest)
            guard !place.host.isEmpty else { return nil }
            host = place.host
            port = place.port ?? (scheme == "https" ? 443 : 1080)
            takesRequests = scheme == "http" || scheme == "https"
        }
    }
#endif
