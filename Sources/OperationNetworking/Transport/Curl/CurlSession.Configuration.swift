// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation

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
#endif
