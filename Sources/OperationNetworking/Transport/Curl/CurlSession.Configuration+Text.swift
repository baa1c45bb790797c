// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation

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
#endif
