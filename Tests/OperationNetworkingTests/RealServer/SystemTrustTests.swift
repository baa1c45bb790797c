// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationTestKit
    import Testing

    /// Tests the system trust in a separate process that sees other certificate files.
    @Suite(
        .enabled(if: ServerPrograms.areThere && MountNamespaces.areThere, "Requires nginx, root and mount namespaces."),
        .timeLimit(.minutes(2)))
    struct SystemTrustTests {
        /// Returns the output of the probe with a system that trusts only the authority of the tests.
        private func answer(
            _ site: String, trusting trust: String = "", by library: String? = nil
        ) async throws -> String {
            let server = try await NginxServer.shared.value
            let openssl = try #require(ServerPrograms.openssl)
            let folder = server.certificates.file("system-\(UUID().uuidString)").path
            let script = """
                set -e
                mkdir "$1"
                cp "$2" "$1/ca-certificates.crt"
                cp "$2" "$1/$("$3" x509 -in "$2" -noout -hash).0"
                mount --bind "$1" /etc/ssl/certs
                shift 3
                exec "$@"
                """
            return try await EnvironmentProbe.run(
                ["\(site)/spoken", trust, "\(site.dropFirst(8)):443:127.0.0.1:\(server.ports.http2)"]
                    + [library].compactMap { $0 },
                by: [
                    "/usr/bin/env", "unshare", "-m", "sh", "-c", script, "sh", folder,
                    server.certificates.authority.path, openssl,
                ])
        }

        @Test func `certificates of system-trusted authorities are accepted`() async throws {
            #expect(try await answer("https://good.test") == "200 HTTP/2.0 TLSv1.3 NONE")
            #expect(try await answer("https://strange.test") == "untrustedCertificate")
        }

        @Test func `a custom trust file replaces the system trust`() async throws {
            let server = try await NginxServer.shared.value
            let stranger = server.certificates.file("stranger.pem").path
            #expect(try await answer("https://strange.test", trusting: stranger) == "200 HTTP/2.0 TLSv1.3 NONE")
            #expect(try await answer("https://good.test", trusting: stranger) == "untrustedCertificate")
        }

        @Test(.enabled(if: dlopen("libcurl-gnutls.so.4", RTLD_LAZY) != nil, "Requires libcurl with GnuTLS."))
        func `trust in certificates in memory is never replaced with the system trust`() async throws {
            let stranger = try await NginxServer.shared.value.certificates.file("stranger.pem").path
            // GnuTLS cannot read certificates from memory.
            let text = try await answer("https://good.test", trusting: stranger, by: "libcurl-gnutls.so.4")
            #expect(text == "untrustedCertificate")
        }
    }
#endif
