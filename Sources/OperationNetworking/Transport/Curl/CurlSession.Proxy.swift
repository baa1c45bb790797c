// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
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
#endif
