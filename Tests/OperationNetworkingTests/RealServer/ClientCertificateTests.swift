// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.enabled(if: ServerPrograms.areThere, "Run Scripts/prepare-servers."), .timeLimit(.minutes(2)))
    struct ClientCertificateTests {
        private func file(_ name: String) async throws -> URL {
            try await NginxServer.shared.value.certificates.file(name)
        }

        @Test func `the client certificate is sent to a server that requests it`() async throws {
            let (certificate, key) = (try await file("client.pem"), try await file("client.key"))
            for site in ["https://client.test", "https://optional.test"] {
                let record = try await NamedBench.get(site) {
                    $0.tls.clientCertificate = certificate
                    $0.tls.clientKey = key
                }
                #expect(record.text == "HTTP/2.0 TLSv1.3 SUCCESS", "\(String(describing: record.error))")
            }
        }

        @Test func `the certificate and its key can be in one file`() async throws {
            let both = try await file("client-both.pem")
            let record = try await NamedBench.get("https://client.test") { $0.tls.clientCertificate = both }
            #expect(record.text == "HTTP/2.0 TLSv1.3 SUCCESS", "\(String(describing: record.error))")
        }

        @Test func `an encrypted key is opened only with its password`() async throws {
            let (certificate, key) = (try await file("client.pem"), try await file("client-locked.key"))
            let record = try await NamedBench.get("https://client.test") {
                $0.tls.clientCertificate = certificate
                $0.tls.clientKey = key
                $0.tls.clientKeyPassword = "open: 100%"
            }
            #expect(record.text == "HTTP/2.0 TLSv1.3 SUCCESS", "\(String(describing: record.error))")
            for password in ["wrong", nil] {
                try await NamedBench.refuses("https://client.test", .clientCertificateRejected) {
                    $0.tls.clientCertificate = certificate
                    $0.tls.clientKey = key
                    $0.tls.clientKeyPassword = password
                }
            }
        }

        @Test func `without a client certificate, the server's response is delivered`() async throws {
            #expect(try await NamedBench.get("https://client.test").status == 400)
            #expect(try await NamedBench.get("https://optional.test").text == "HTTP/2.0 TLSv1.3 NONE")
        }

        @Test func `a client certificate of an unknown authority is refused`() async throws {
            let (certificate, key) = (try await file("other-client.pem"), try await file("other-client.key"))
            let record = try await NamedBench.get("https://client.test") {
                $0.tls.clientCertificate = certificate
                $0.tls.clientKey = key
            }
            #expect(record.status == 400)
        }

        @Test
        func `an unreadable or mismatched certificate or key fails with clientCertificateRejected`() async throws {
            let (certificate, key) = (try await file("client.pem"), try await file("client.key"))
            let (nowhere, other) = (URL(fileURLWithPath: "/nowhere/at-all"), try await file("server.key"))
            for (certificate, key) in [(nowhere, key), (certificate, nowhere), (certificate, other), (key, key)] {
                try await NamedBench.refuses("https://client.test", .clientCertificateRejected) {
                    $0.tls.clientCertificate = certificate
                    $0.tls.clientKey = key
                }
            }
        }

        /// `openssl s_server` closes the connection where nginx sends a response.
        @Test(arguments: ["-tls1_2", "-tls1_3"])
        func `a handshake that the server aborts because of the certificate reports clientCertificateRejected`(
            _ version: String
        ) async throws {
            let certificates = try await NginxServer.shared.value.certificates
            let openssl = try #require(ServerPrograms.openssl)
            let port = LocalPort.free()
            let arguments = [
                "s_server", "-accept", "127.0.0.1:\(port)", "-Verify", "1", "-verify_return_error", "-www", version,
                "-CAfile", certificates.authority.path, "-cert", certificates.file("server.pem").path,
                "-key", certificates.file("server.key").path,
            ]
            let program = try await TestThread.run {
                let program = try GuardedProgram(openssl, arguments)
                while program.isRunning, !LocalPort.isOpen(port) { usleep(5_000) }
                return program
            }
            let right = try await NamedBench.get("https://127.0.0.1:\(port)", "/") {
                $0.tls.clientCertificate = certificates.file("client-both.pem")
            }
            #expect(right.status == 200, "\(String(describing: right.error))")
            let wrong = try await NamedBench.get("https://127.0.0.1:\(port)", "/") {
                $0.tls.clientCertificate = certificates.file("other-client.pem")
                $0.tls.clientKey = certificates.file("other-client.key")
            }
            #expect(wrong.error?.code == .clientCertificateRejected, "\(String(describing: wrong.error))")
            let none = try await NamedBench.get("https://127.0.0.1:\(port)", "/")
            // Before TLS 1.3, a server has no specific alert for a missing certificate.
            let codes: [NetworkError.Code] = [.clientCertificateRejected, .secureConnectionFailed]
            #expect(none.error.map { codes.contains($0.code) } == true, "\(String(describing: none.error))")
            try await TestThread.run { program.end() }
        }
    }
#endif
