// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if os(Linux)
    extension CurlSession {
        /// Which proxy a session uses.
        public struct Proxy: Sendable, Hashable {
            enum Kind: Hashable {
                case environment
                case none
                case explicit(url: String, credentials: String?, exceptions: String)
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
                // libcurl takes the first colon for the end of the name, and decodes both parts.
                let credentials = user.map { "\(encoded($0)):\(encoded(password))" }
                return Proxy(
                    kind: .explicit(url: url, credentials: credentials, exceptions: exceptions.joined(separator: ",")))
            }

            private static func encoded(_ text: String) -> String {
                text.utf8.map { byte in
                    let digits = String(byte, radix: 16)
                    return digits.count == 1 ? "%0\(digits)" : "%\(digits)"
                }.joined()
            }
        }
    }
#endif
