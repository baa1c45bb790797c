// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation

    /// The destinations of connections, counted in the same way as in libcurl.
    ///
    /// libcurl limits the connections to each destination, whatever the hosts of the requests are. The slots must be
    /// counted in the same way, because a transfer that waits inside libcurl does not know that it waits.
    ///
    /// A destination is a host and a port. If a proxy receives the request unchanged (without TLS and without another
    /// address), they are those of the proxy. Otherwise the port is that of the URL, and the host is that of the URL or
    /// the one that replaces it. A Unix-domain socket is one destination, because it is one server. Even so, libcurl
    /// reuses a connection only for the host for which it was made.
    package struct CurlConnectionSlots {
        package struct Place: Hashable, Sendable {
            package let name: String
            /// Whether no name must be looked up.
            package let isNumeric: Bool
        }

        /// The maximum number of remembered destinations.
        private static var capacity: Int { 1_024 }

        private let unixSocketPath: String?
        private let overrides: [AddressOverride]
        private let plainProxy: ProxyAddress?
        private let secureProxy: ProxyAddress?
        private let exceptions: ProxyExceptions
        private var known: [String: Place] = [:]

        /// Reads the configuration and the environment, which libcurl reads again for each connection.
        package init(_ configuration: CurlSession.Configuration, environment: (String) -> String?) {
            unixSocketPath = configuration.unixSocketPath
            overrides = AddressOverride.inOrder(configuration.addressOverrides)
            func first(_ names: String...) -> String? {
                names.compactMap { environment($0) }.first { !$0.isEmpty }
            }
            switch configuration.proxy.kind {
            case .none:
                (plainProxy, secureProxy, exceptions) = (nil, nil, ProxyExceptions(""))
            case .explicit(let url, _, _, let hosts):
                plainProxy = ProxyAddress(url)
                (secureProxy, exceptions) = (plainProxy, ProxyExceptions(hosts))
            case .environment:
                plainProxy = first("http_proxy", "all_proxy", "ALL_PROXY").flatMap { ProxyAddress($0) }
                secureProxy = first("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY").flatMap { ProxyAddress($0) }
                exceptions = ProxyExceptions(first("no_proxy", "NO_PROXY") ?? "")
            }
        }

        /// Returns the destination of the connection for a request.
        package mutating func place(of origin: RequestOrigin) -> Place {
            if let place = known[origin.name] { return place }
            let place = findPlace(of: origin)
            if known.count >= Self.capacity { known = [:] }
            known[origin.name] = place
            return place
        }

        private func findPlace(of origin: RequestOrigin) -> Place {
            if let unixSocketPath { return Place(name: unixSocketPath, isNumeric: true) }
            let (host, zone, port) = origin.place
            let override = overrides.lazy.compactMap { $0.target(of: host, port: port) }.first
            let counted = override?.host ?? host + (zone.map { "%\($0)" } ?? "")
            guard let proxy = origin.isSecure ? secureProxy : plainProxy, !exceptions.contain(host) else {
                return Place(name: "\(counted):\(port)", isNumeric: Self.isNumeric(counted))
            }
            let isElsewhere = override?.host ?? host != host || override?.port ?? port != port
            let isTunnel = origin.isSecure || !proxy.takesRequests || isElsewhere
            return Place(
                name: isTunnel ? "\(counted):\(port)" : "\(proxy.host):\(proxy.port)",
                isNumeric: Self.isNumeric(proxy.host))
        }

        private static func isNumeric(_ host: String) -> Bool {
            host.utf8.contains(0x3A) || host.utf8.allSatisfy { (0x30...0x39).contains($0) || $0 == 0x2E }
        }
    }
#endif
