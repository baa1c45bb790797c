// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation

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
#endif
