// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation

    extension CurlSession {
        /// The configuration of a libcurl session.
        public struct Configuration: Sendable {
            /// The maximum number of connections to a destination.
            ///
            /// The default is 6. This value also limits the number of concurrent HTTP/1 requests to the destination. A
            /// destination is usually the host and port of a URL. If the session sends an `http` request through an
            /// HTTP proxy, the destination is the proxy. If a key of ``addressOverrides`` applies, or if you set
            /// ``unixSocketPath``, the destination is the address or the socket that you specify.
            public var maximumConnectionsPerHost = 6
            /// The maximum number of connections of the session, including idle connections.
            ///
            /// The default is 256. This value also limits the number of concurrent requests.
            public var maximumConnections = 256
            /// The maximum number of concurrent requests over an HTTP/2 connection.
            ///
            /// The default is 100.
            package var maximumStreamsPerConnection = 100
            /// The maximum time for which the session keeps an idle connection open.
            ///
            /// The default is 60 seconds.
            package var idleLifetime = Duration.seconds(60)
            /// The maximum number of concurrent name lookups, each of which uses a separate thread.
            ///
            /// The default is 3.
            package var maximumNameLookups = 3
            /// The proxy through which the session sends requests.
            ///
            /// The default is ``CurlSession/Proxy/environment``.
            public var proxy = Proxy.environment
            /// The TLS settings of the session, such as the certificates that it trusts.
            ///
            /// The default settings trust the system's certificates and require TLS version 1.2 or later.
            public var tls = TLS()
            /// The path of a Unix domain socket to which the session connects instead of the hosts of requests.
            ///
            /// The default is `nil`, which connects to the hosts of requests.
            public var unixSocketPath: String?
            /// The addresses to which the session connects instead of the hosts of requests, such as
            /// `["example.com:443": "127.0.0.1:8443"]`.
            ///
            /// The default is an empty dictionary. The overrides do not change the URLs and headers of requests. A key
            /// with an empty host or port, such as `":443"` or `"example.com:"`, applies to all hosts or ports. If
            /// several keys apply, the session uses the most specific key. A key can contain a host in any form that is
            /// valid in a URL, such as `"bücher.example:443"` or `"[0:0:0:0:0:0:0:1]:8080"`.
            public var addressOverrides: [String: String] = [:]

            /// Creates a configuration with the default values.
            public init() {}
        }
    }

    extension CurlSession.Proxy: CustomStringConvertible, CustomReflectable {
        /// A description of the proxy, without its URL, which can contain a password.
        public var description: String {
            switch kind {
            case .environment: "the environment's proxy"
            case .none: "no proxy"
            case .explicit: "an explicit proxy"
            }
        }

        /// A mirror for debuggers and `dump` that does not contain secrets.
        public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
    }

    extension CurlSession.TLS: CustomStringConvertible, CustomReflectable {
        /// A description of the TLS settings, without the password of the private key.
        public var description: String {
            "trust: \(trust), pinned keys: \(pinnedKeys?.count ?? 0), certificate: \(clientCertificate?.path ?? "none")"
        }

        /// A mirror for debuggers and `dump` that does not contain secrets.
        public var customMirror: Mirror {
            Mirror(
                self,
                children: [
                    "trust": trust, "pinnedKeys": pinnedKeys as Any, "clientCertificate": clientCertificate as Any,
                    "clientKey": clientKey as Any, "oldestVersion": oldestVersion,
                    "newestVersion": newestVersion as Any,
                ], displayStyle: .struct)
        }
    }

    extension CurlSession {
        /// A setting that determines the proxy through which a session sends requests.
        public struct Proxy: Sendable, Hashable {
            enum Kind: Hashable {
                case environment
                case none
                case explicit(url: String, user: String?, password: String, exceptions: String)
            }

            let kind: Kind

            /// The session uses the proxy in the environment variables `http_proxy`, `https_proxy`, `all_proxy` and
            /// `no_proxy`.
            public static let environment = Proxy(kind: .environment)

            /// The session does not use a proxy, even if the environment variables contain one.
            public static let none = Proxy(kind: .none)

            /// Returns a setting for the proxy at a URL.
            ///
            /// - Parameters:
            ///   - url: The URL of the proxy, such as `http://host:port`, `https://…` or `socks5h://…`.
            ///   - user: The user name that the session sends to the proxy, with Basic authentication for an HTTP
            ///     proxy. The default is `nil`, which disables authentication.
            ///   - password: The password that belongs to the user name. The default is an empty string.
            ///   - exceptions: The hosts and domains to which the session connects without the proxy. The default is an
            ///     empty array.
            public static func url(
                _ url: String, user: String? = nil, password: String = "", exceptions: [String] = []
            ) -> Proxy {
                Proxy(
                    kind: .explicit(
                        url: url, user: user, password: password, exceptions: exceptions.joined(separator: ",")))
            }
        }
    }

    extension CurlSession {
        /// The TLS settings of a session, such as the certificates that it trusts and its client certificate.
        ///
        /// You cannot disable certificate evaluation. To connect to a server whose certificate you issued, set
        /// ``trust`` to the certificate of your certificate authority.
        public struct TLS: Sendable, Hashable {
            /// The source of the certificates that a session trusts.
            ///
            /// Future versions may add cases.
            public enum Trust: Sendable, Hashable {
                /// The session trusts the system's certificates.
                case system
                /// The session trusts only the certificates in the given PEM file.
                case file(URL)
                /// The session trusts only the certificates in the given PEM data.
                ///
                /// With GnuTLS or NSS, older versions of libcurl cannot read certificates from memory. The session then
                /// trusts no certificate.
                case data(Data)
            }

            /// The source of the certificates that the session trusts when it connects to servers and proxies.
            ///
            /// The default is ``Trust/system``.
            public var trust = Trust.system
            /// The pins of the server keys that the session accepts.
            ///
            /// Each pin is the Base64-encoded SHA-256 hash of the DER-encoded `SubjectPublicKeyInfo` of a key. The
            /// default is `nil`, which accepts all keys. If the array is empty, the session accepts no keys.
            public var pinnedKeys: [String]?
            /// The PEM file that contains the client certificate.
            ///
            /// The default is `nil`, which uses no client certificate.
            public var clientCertificate: URL?
            /// The PEM file that contains the private key of the client certificate.
            ///
            /// The default is `nil`, which reads the key from the file of the certificate.
            public var clientKey: URL?
            /// The password of the private key.
            ///
            /// The default is `nil`, which is suitable only for a key that is not encrypted.
            public var clientKeyPassword: String?
            /// The oldest version of TLS that the session uses.
            ///
            /// The default is ``Version/tls1_2``.
            public var oldestVersion = Version.tls1_2
            /// The newest version of TLS that the session uses.
            ///
            /// The default is `nil`, which allows the newest version that the TLS library supports.
            public var newestVersion: Version?

            /// Creates TLS settings with the default values.
            public init() {}

            /// A version of the TLS protocol.
            public struct Version: Sendable, Hashable {
                let number: Int

                /// TLS version 1.2.
                public static let tls1_2 = Version(number: 6)
                /// TLS version 1.3.
                public static let tls1_3 = Version(number: 7)
            }
        }
    }

    /// Another address for a host and a port, each of which may be empty to apply to all.
    struct AddressOverride {
        /// The override as libcurl reads it, which consists of the original address, a colon and the other address.
        let line: String
        private let generality: Int

        private init(_ place: String, _ target: String) {
            line = "\(Self.normalized(place)):\(target)"
            // An override for a host is more specific than one for a port.
            generality = (place.hasPrefix(":") ? 2 : 0) + (place.hasSuffix(":") ? 1 : 0)
        }

        /// Returns a host and a port with the host in the form that the hosts of requests have.
        private static func normalized(_ place: String) -> String {
            guard let colon = place.lastIndex(of: ":"),
                let authority = try? URLAuthority(String(place[..<colon]), writtenBy: .user),
                authority.userInformation == nil, authority.port == nil
            else { return place }
            return authority.host + place[colon...]
        }

        /// Returns the overrides of a configuration, the most specific first, because the first match counts.
        static func inOrder(_ overrides: [String: String]) -> [AddressOverride] {
            overrides.map { AddressOverride($0.key, $0.value) }
                .sorted { ($0.generality, $0.line) < ($1.generality, $1.line) }
        }

        /// Returns the other address for a host and a port, or `nil` if the override does not apply or names nothing.
        func target(of host: String, port: Int) -> (host: String?, port: Int?)? {
            guard let rest = line[...].after(host.contains(":") ? "[\(host)]" : host)?.after("\(port)") else {
                return nil
            }
            let target = HostAndPort(rest)
            guard !target.host.isEmpty || target.port != nil else { return nil }
            return (target.host.isEmpty ? nil : target.host, target.port)
        }
    }

    extension Substring {
        /// Returns the text after a word and a colon, or after a colon alone, or `nil` if the text begins with
        /// something else.
        fileprivate func after(_ word: String) -> Substring? {
            if first == ":" { return dropFirst() }
            guard lowercased().hasPrefix("\(word):") else { return nil }
            return dropFirst(word.count + 1)
        }
    }

    /// A host in lowercase and without brackets, and a port if there is one.
    struct HostAndPort {
        let host: String
        let port: Int?

        init(_ text: Substring) {
            let end =
                text.first == "["
                ? text.firstIndex(of: "]").map { text.index(after: $0) } ?? text.endIndex
                : text.firstIndex(of: ":") ?? text.endIndex
            var host = text[..<end]
            if host.first == "[" {
                host = host.dropFirst()
                if host.last == "]" { host = host.dropLast() }
            }
            self.host = host.lowercased()
            port = text[end...].first == ":" ? Int(text[end...].dropFirst()) : nil
        }
    }

    /// The address of a proxy, parsed as libcurl parses its URL.
    struct ProxyAddress {
        let host: String
        let port: Int
        /// Whether requests without TLS are sent to the proxy unchanged, while a SOCKS proxy only forwards bytes.
        let takesRequests: Bool

        /// Parses the URL of a proxy, or returns `nil` if it has no host.
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

    /// The hosts that are reached without the proxy, in the form of libcurl.
    ///
    /// The list contains names that include their subdomains, addresses, ranges of addresses (`10.0.0.0/8`), or an
    /// asterisk for all hosts.
    struct ProxyExceptions {
        private let hosts: [String]
        private let isForAll: Bool

        init(_ list: String) {
            isForAll = list == "*"
            hosts = list.lowercased().split { $0 == "," || $0 == " " || $0 == "\t" }.map { String($0) }
        }

        /// Returns whether a host, in lowercase and without brackets, is one of them.
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

        /// Returns the bytes of an IP address, or `nil` for a name.
        private static func bytes(_ text: String) -> [UInt8]? {
            for (family, count) in [(AF_INET, 4), (AF_INET6, 16)] {
                var address = [UInt8](repeating: 0, count: count)
                if inet_pton(family, text, &address) == 1 { return address }
            }
            return nil
        }
    }
#endif
