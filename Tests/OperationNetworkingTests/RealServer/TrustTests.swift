// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.enabled(if: ServerPrograms.areThere, "Run Scripts/prepare-servers."), .timeLimit(.minutes(2)))
    struct TrustTests {
        private typealias Configuration = CurlSession.Configuration

        @Test func `a certificate of a trusted authority is accepted, from a file and from memory`() async throws {
            let server = try await NginxServer.shared.value
            #expect(try await NamedBench.get("https://good.test").text == "HTTP/2.0 TLSv1.3 NONE")
            let data = try Data(contentsOf: server.certificates.authority)
            let record = try await NamedBench.get("https://good.test") { $0.tls.trust = .data(data) }
            #expect(record.text == "HTTP/2.0 TLSv1.3 NONE")
            #expect(record.metrics?.secured != nil)
        }

        @Test func `the system trust does not include the test authority`() async throws {
            try await NamedBench.refuses("https://good.test", .untrustedCertificate) { $0.tls.trust = .system }
        }

        @Test(arguments: ["strange", "expired", "self", "other"])
        func `an untrusted, expired, self-signed or mismatched certificate is refused`(_ name: String) async throws {
            try await NamedBench.refuses("https://\(name).test", .untrustedCertificate)
        }

        @Test func `a certificate for another address is refused`() async throws {
            let server = try await NginxServer.shared.value
            try await NamedBench.refuses("https://127.0.0.2:\(server.ports.http2)", .untrustedCertificate) {
                $0.addressOverrides = ["127.0.0.2:": "127.0.0.1:"]
            }
        }

        @Test func `only certificates of the configured authority are accepted`() async throws {
            let server = try await NginxServer.shared.value
            try await NamedBench.refuses("https://good.test", .untrustedCertificate) {
                $0.tls.trust = .file(server.certificates.file("stranger.pem"))
            }
            let strange = try await NamedBench.get("https://strange.test") {
                $0.tls.trust = .file(server.certificates.file("stranger.pem"))
            }
            #expect(strange.status == 200)
        }

        @Test func `a self-signed certificate is accepted if it is configured as trusted`() async throws {
            let server = try await NginxServer.shared.value
            let record = try await NamedBench.get("https://self.test") {
                $0.tls.trust = .file(server.certificates.file("self.pem"))
            }
            #expect(record.status == 200)
        }

        @Test func `an unreadable or empty trust configuration accepts no certificate`() async throws {
            try await NamedBench.refuses("https://good.test", .untrustedCertificate) {
                $0.tls.trust = .file(URL(fileURLWithPath: "/nowhere/at-all.pem"))
            }
            try await NamedBench.refuses("https://good.test", .untrustedCertificate) {
                $0.tls.trust = .data(Data("no certificate".utf8))
            }
            try await NamedBench.refuses("https://good.test", .untrustedCertificate) { $0.tls.trust = .data(Data()) }
        }

        @Test func `a refused certificate does not affect later requests of the session`() async throws {
            let bench = try await NamedBench("https://good.test") {
                $0.addressOverrides["bad.test:443"] = $0.addressOverrides["good.test:443"]
            }
            let bad = try #require(URL(string: "https://bad.test/small"))
            for _ in 0..<5 {
                let record = await bench.run(try NetworkRequest(url: bad))
                #expect(record.error?.code == .untrustedCertificate)
                #expect(try await bench.get("/small").bodyCount == 100)
            }
            bench.closeSession()
        }

        @Test func `https to a plain port fails, and http to a TLS port receives an error response`() async throws {
            let ports = try await NginxServer.shared.value.ports
            try await NamedBench.refuses("https://127.0.0.1:\(ports.plain)", .secureConnectionFailed)
            #expect(try await NamedBench.get("http://127.0.0.1:\(ports.http2)").status != 200)
            #expect(try await NamedBench.get("http://127.0.0.1:\(ports.secure)").status == 400)
        }
    }

    // Pinned keys.
    extension TrustTests {
        @Test func `a server with a pinned key is accepted`() async throws {
            let server = try await NginxServer.shared.value
            let pins = [try server.certificates.pin("strange"), try server.certificates.pin("server")]
            #expect(try await NamedBench.get("https://good.test") { $0.tls.pinnedKeys = pins }.status == 200)
        }

        @Test func `a server without a pinned key is refused, and an empty list refuses every server`() async throws {
            let server = try await NginxServer.shared.value
            let pin = try server.certificates.pin("strange")
            try await NamedBench.refuses("https://good.test", .untrustedCertificate) { $0.tls.pinnedKeys = [pin] }
            try await NamedBench.refuses("https://good.test", .untrustedCertificate) { $0.tls.pinnedKeys = [] }
            for malformed in ["", "*", "sha256//", ";", "\(pin);sha256//"] {
                try await NamedBench.refuses("https://good.test", .untrustedCertificate) {
                    $0.tls.pinnedKeys = [malformed]
                }
            }
        }

        @Test func `a pinned key does not make an untrusted certificate trusted`() async throws {
            let server = try await NginxServer.shared.value
            let pin = try server.certificates.pin("strange")
            try await NamedBench.refuses("https://strange.test", .untrustedCertificate) { $0.tls.pinnedKeys = [pin] }
        }
    }

    // TLS versions.
    extension TrustTests {
        @Test func `the newest TLS version that both sides support is used`() async throws {
            let ports = try await NginxServer.shared.value.ports
            let site = "https://127.0.0.1:"
            #expect(try await NamedBench.get("\(site)\(ports.tls1_2)").text == "HTTP/1.1 TLSv1.2 NONE")
            #expect(try await NamedBench.get("\(site)\(ports.tls1_3)").text == "HTTP/1.1 TLSv1.3 NONE")
            let limited = try await NamedBench.get("\(site)\(ports.http2)") { $0.tls.newestVersion = .tls1_2 }
            #expect(limited.text == "HTTP/2.0 TLSv1.2 NONE")
        }

        @Test func `a TLS version outside the configured range is refused`() async throws {
            let ports = try await NginxServer.shared.value.ports
            try await NamedBench.refuses("https://127.0.0.1:\(ports.tls1_2)", .secureConnectionFailed) {
                $0.tls.oldestVersion = .tls1_3
            }
            try await NamedBench.refuses("https://127.0.0.1:\(ports.tls1_3)", .secureConnectionFailed) {
                $0.tls.newestVersion = .tls1_2
            }
            try await NamedBench.refuses("https://127.0.0.1:\(ports.http2)", .secureConnectionFailed) {
                $0.tls.oldestVersion = .tls1_3
                $0.tls.newestVersion = .tls1_2
            }
        }
    }
#endif
