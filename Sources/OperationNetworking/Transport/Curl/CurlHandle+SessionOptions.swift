// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations
    import Foundation

    // The options that all transfers of a session share.
    extension CurlHandle {
        func set(_ configuration: CurlSession.Configuration) {
            set(OKCurlOptionUnixSocketPath, configuration.unixSocketPath)
            guard !configuration.addressOverrides.isEmpty else { return }
            overrides = CurlList(AddressOverride.inOrder(configuration.addressOverrides).map { .text($0.line) })
            set(OKCurlOptionConnectTo, UnsafeRawPointer(overrides.head))
        }

        func set(_ proxy: CurlSession.Proxy) {
            switch proxy.kind {
            case .environment: break
            case .none: set(OKCurlOptionProxy, "")
            case .explicit(let url, let user, let password, let exceptions):
                set(OKCurlOptionProxy, url)
                set(OKCurlOptionProxyUser, user.map(Self.escaped))
                set(OKCurlOptionProxyPassword, user.map { _ in Self.escaped(password) })
                set(OKCurlOptionNoProxy, exceptions)
            }
        }

        /// Returns a user name or password of a proxy with its percent signs escaped, because libcurl decodes escapes.
        private static func escaped(_ text: String) -> String {
            text.split(separator: "%", omittingEmptySubsequences: false).joined(separator: "%25")
        }

        func set(_ tls: CurlSession.TLS) {
            set(OKCurlOptionVerifyPeer, 1)
            set(OKCurlOptionVerifyHost, 2)
            set(tls.trust)
            if let keys = tls.pinnedKeys {
                let none = "sha256//" + Data(repeating: 0, count: 32).base64EncodedString()
                set(OKCurlOptionPinnedKeys, keys.isEmpty ? none : keys.map { "sha256//\($0)" }.joined(separator: ";"))
            }
            set(OKCurlOptionClientCertificate, tls.clientCertificate?.path)
            set(OKCurlOptionClientKey, tls.clientKey?.path)
            // Without a password, OpenSSL would ask for it on the terminal and wait.
            set(OKCurlOptionClientKeyPassword, tls.clientKeyPassword ?? "")
            let versions = tls.oldestVersion.number | (tls.newestVersion?.number ?? 0) << 16
            set(OKCurlOptionTLSVersion, versions)
            set(OKCurlOptionProxyTLSVersion, versions)
        }

        /// Sets the trusted certificates for servers and for proxies.
        ///
        /// The folder with which libcurl was built must be removed, because it would be trusted in addition.
        private func set(_ trust: CurlSession.TLS.Trust) {
            if trust == .system { return }
            set(OKCurlOptionCAFolder, UnsafeRawPointer?.none)
            set(OKCurlOptionProxyCAFolder, UnsafeRawPointer?.none)
            if case .data(let data) = trust, !data.isEmpty {
                set(OKCurlOptionCAData, data)
                return set(OKCurlOptionProxyCAData, data)
            }
            // Without certificates, no server must be trusted, not every server.
            var path = "/dev/null"
            if case .file(let url) = trust { path = url.path }
            set(OKCurlOptionCAFile, path)
            set(OKCurlOptionProxyCAFile, path)
        }

        private func set(_ option: Int, _ data: Data) {
            var data = data
            let count = data.count
            data.withUnsafeMutableBytes { bytes in
                var blob = OKCurlBlob(data: bytes.baseAddress, length: count, flags: UInt32(OKCurlBlobIsCopied))
                withUnsafePointer(to: &blob) { set(option, UnsafeRawPointer($0)) }
            }
        }
    }
#endif
