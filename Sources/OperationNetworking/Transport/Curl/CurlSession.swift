// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation

    /// The session of this package on Linux: libcurl on one thread of its own, with one event loop for all its tasks.
    ///
    /// It uses the libcurl that every program with FoundationNetworking has in it; nothing is to be installed. Connections
    /// are kept and used again, also while HTTP/2 carries many requests over one.
    ///
    /// A session that is let go of ends after its last task. In a child process made by `fork` without `exec` sessions made
    /// before do not work: their tasks end with ``NetworkError/Code/sessionUnavailable``.
    public final class CurlSession: NetworkSession {
        /// The session that everybody in the process shares, with the standard configuration; it is never closed by itself.
        public static let shared = CurlSession()

        /// Why sessions of this kind cannot work on this system; nil if they can.
        public static var problem: NetworkError? {
            if case .failure(let error) = CurlLibrary.shared { error } else { nil }
        }

        /// The library beneath and its version, for logs.
        public static var libraryVersion: String? { try? CurlLibrary.shared.get().version }

        /// A Boolean value that indicates whether libcurl tells which requests an HTTP/2 server did not process.
        package static var tellsRefusals: Bool { (try? CurlLibrary.shared.get().tellsRefusals) ?? false }

        private let engine: CurlEngine

        /// Makes a session; its thread begins with the first task.
        public init(configuration: Configuration = Configuration()) {
            engine = CurlEngine(configuration)
        }

        /// Makes a session for tests, whose time limits are kept by a clock that is ahead of the system's.
        ///
        /// What it does about a leap of the clock, it does with the next thing that happens in it.
        package init(configuration: Configuration, lead: @escaping @Sendable () -> Duration) {
            engine = CurlEngine(configuration, lead: lead)
        }

        deinit {
            engine.finish()
        }

        /// How the session was set up.
        public var configuration: Configuration { engine.configuration }

        /// Makes a task that waits for its first `resume()`.
        public func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
            CurlTask(request, receiver, engine, CurlEngine.Extras())
        }

        /// Ends all tasks with ``NetworkError/Code/sessionClosed`` and closes all connections, soon, on the session's thread.
        ///
        /// Tasks that are resumed later end in the same way.
        public func close() {
            engine.close()
        }

        /// Closes the session and waits until its thread is gone; on that thread itself it does not wait.
        @available(*, noasync, message: "It blocks the thread. Call close() instead.")
        public func closeAndWait() {
            engine.close()
            engine.waitForThread()
        }
    }

    extension CurlSession {
        /// How a session is set up.
        public struct Configuration: Sendable {
            /// The most connections to one host and port, and over HTTP/1 the most requests on their way to it: 6.
            ///
            /// What counts is where they go: to the proxy (requests without TLS), to the address that stands in for a host
            /// (``addressOverrides``), or to the Unix-domain socket.
            public var maximumConnectionsPerHost = 6
            /// The most connections in all, idle ones included, and the most requests on their way: 256.
            public var maximumConnections = 256
            /// The most requests over one connection at a time where HTTP/2 is spoken: 100.
            public var maximumStreamsPerConnection = 100
            /// How long connections are kept while the session has nothing to do, and how old an idle one may be when it is
            /// used again: 60 seconds.
            public var idleLifetime = Duration.seconds(60)
            /// The most names that are looked up at a time, each on a thread: 3.
            public var maximumNameLookups = 3
            /// Which proxy is used: that of the environment (`http_proxy`, `https_proxy`, `all_proxy`, `no_proxy`).
            public var proxy = Proxy.environment
            /// Whom to trust, and how to be trusted.
            public var tls = TLS()
            /// The path of a Unix-domain socket to which all connections go, whatever the host.
            public var unixSocketPath: String?
            /// Other addresses for hosts, such as `["example.com:443": "127.0.0.1:8443"]`; what is sent stays as it is.
            ///
            /// An empty host or port (`":443"`, `"example.com:"`, `":"`) stands for all; the most definite that fits counts.
            /// The host may be in any spelling that a URL may have: `"bücher.example:443"` and
            /// `"[0:0:0:0:0:0:0:1]:8080"` apply, too.
            public var addressOverrides: [String: String] = [:]

            /// Makes the standard configuration.
            public init() {}
        }
    }

    extension CurlSession.Proxy: CustomStringConvertible, CustomReflectable {
        /// Which kind it is; never its address, which may have a password in it.
        public var description: String {
            switch kind {
            case .environment: "the environment's proxy"
            case .none: "no proxy"
            case .explicit: "a proxy of one's own"
            }
        }

        /// What debuggers and `dump` show: no secrets.
        public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
    }

    extension CurlSession.TLS: CustomStringConvertible, CustomReflectable {
        /// Whom it trusts and what it presents; never the password of the key.
        public var description: String {
            "trust: \(trust), pinned keys: \(pinnedKeys?.count ?? 0), certificate: \(clientCertificate?.path ?? "none")"
        }

        /// What debuggers and `dump` show: no secrets.
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
        /// Which proxy a session uses.
        public struct Proxy: Sendable, Hashable {
            enum Kind: Hashable {
                case environment
                case none
                case explicit(url: String, user: String?, password: String, exceptions: String)
            }

            let kind: Kind

            /// The one that the variables of the environment name, if any.
            public static let environment = Proxy(kind: .environment)

            /// No proxy, whatever the environment says.
            public static let none = Proxy(kind: .none)

            /// A certain proxy.
            ///
            /// - Parameters:
            ///   - url: Its URL: `http://host:port`, `https://…`, `socks5h://…`.
            ///   - user: The user that it asks for; it is told at once, in the scheme Basic.
            ///   - password: And the password.
            ///   - exceptions: Hosts and domains that are connected to directly.
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
        /// Whom a session trusts, and by what it is trusted itself.
        ///
        /// There is no way to trust everybody: to talk to a server with a certificate of your own, give its authority.
        public struct TLS: Sendable, Hashable {
            /// Where the certificates are that are trusted.
            ///
            /// More cases may be added.
            public enum Trust: Sendable, Hashable {
                /// Those of the system.
                case system
                /// Those in a file, in PEM, and no others.
                case file(URL)
                /// These, in PEM, and no others.
                case data(Data)
            }

            /// Where the certificates are that are trusted, of servers and of proxies: those of the system.
            public var trust = Trust.system
            /// Which public keys a server may have, as SHA-256 of their DER in Base64: all if nil, and none if empty.
            public var pinnedKeys: [String]?
            /// Our certificate, in PEM.
            public var clientCertificate: URL?
            /// The key to it, in PEM; nil if it is in the same file.
            public var clientKey: URL?
            /// The password of the key.
            public var clientKeyPassword: String?
            /// The oldest version that is spoken: 1.2.
            public var oldestVersion = Version.tls1_2
            /// The newest version that is spoken: the newest there is.
            public var newestVersion: Version?

            /// Makes the standard setting.
            public init() {}

            /// A version of TLS.
            public struct Version: Sendable, Hashable {
                let number: Int

                /// TLS 1.2.
                public static let tls1_2 = Version(number: 6)
                /// TLS 1.3.
                public static let tls1_3 = Version(number: 7)
            }
        }
    }

    /// Another address for a host and a port, each of which may be empty and then stands for all.
    struct AddressOverride {
        /// As libcurl takes it: both places with a colon between them.
        let line: String
        private let generality: Int

        private init(_ place: String, _ target: String) {
            line = "\(Self.normalized(place)):\(target)"
            // A host counts for more than a port.
            generality = (place.hasPrefix(":") ? 2 : 0) + (place.hasSuffix(":") ? 1 : 0)
        }

        /// Returns a host and a port with the host in the one form that hosts of requests have.
        private static func normalized(_ place: String) -> String {
            guard let colon = place.lastIndex(of: ":"),
                let authority = try? URLAuthority(String(place[..<colon]), writtenBy: .user),
                authority.userInformation == nil, authority.port == nil
            else { return place }
            return authority.host + place[colon...]
        }

        /// Those of a configuration, the more definite ones first, for the first that fits counts.
        static func inOrder(_ overrides: [String: String]) -> [AddressOverride] {
            overrides.map { AddressOverride($0.key, $0.value) }
                .sorted { ($0.generality, $0.line) < ($1.generality, $1.line) }
        }

        /// What stands in for a host and a port; nil if it is not about them, or names nothing.
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
        /// What comes after a word, or nothing, and a colon; nil if it begins with something else.
        fileprivate func after(_ word: String) -> Substring? {
            if first == ":" { return dropFirst() }
            guard lowercased().hasPrefix("\(word):") else { return nil }
            return dropFirst(word.count + 1)
        }
    }

    /// A host, in small letters and without brackets, and a port if one is named.
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
