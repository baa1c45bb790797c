// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.enabled(if: ServerPrograms.areThere, "Run Scripts/prepare-servers."), .timeLimit(.minutes(2)))
    struct TrustTests {
        private typealias Configuration = CurlSession.Configuration

        @Test func `a certificate of an authority that is trusted opens, from a file and from memory`() async throws {
            let server = try await NginxServer.shared.value
            #expect(try await NamedBench.get("https://good.test").text == "HTTP/2.0 TLSv1.3 NONE")
            let data = try Data(contentsOf: server.certificates.authority)
            let record = try await NamedBench.get("https://good.test") { $0.tls.trust = .data(data) }
            #expect(record.text == "HTTP/2.0 TLSv1.3 NONE")
            #expect(record.metrics?.secured != nil)
        }

        @Test func `what the system trusts does not include our authority`() async throws {
            try await NamedBench.refuses("https://good.test", .untrustedCertificate) { $0.tls.trust = .system }
        }

        @Test(arguments: ["strange", "expired", "self", "other"])
        func `a wrong certificate is refused`(_ name: String) async throws {
            try await NamedBench.refuses("https://\(name).test", .untrustedCertificate)
        }

        @Test func `a certificate for another address is refused`() async throws {
            let server = try await NginxServer.shared.value
            try await NamedBench.refuses("https://127.0.0.2:\(server.ports.http2)", .untrustedCertificate) {
                $0.addressOverrides = ["127.0.0.2:": "127.0.0.1:"]
            }
        }

        @Test func `an authority of somebody else does not help`() async throws {
            let server = try await NginxServer.shared.value
            try await NamedBench.refuses("https://good.test", .untrustedCertificate) {
                $0.tls.trust = .file(server.certificates.file("stranger.pem"))
            }
            let strange = try await NamedBench.get("https://strange.test") {
                $0.tls.trust = .file(server.certificates.file("stranger.pem"))
            }
            #expect(strange.status == 200)
        }

        @Test func `a certificate that signs itself is trusted if it is what is given`() async throws {
            let server = try await NginxServer.shared.value
            let record = try await NamedBench.get("https://self.test") {
                $0.tls.trust = .file(server.certificates.file("self.pem"))
            }
            #expect(record.status == 200)
        }

        @Test func `trust that cannot be read is nobody's`() async throws {
            try await NamedBench.refuses("https://good.test", .untrustedCertificate) {
                $0.tls.trust = .file(URL(fileURLWithPath: "/nowhere/at-all.pem"))
            }
            try await NamedBench.refuses("https://good.test", .untrustedCertificate) {
                $0.tls.trust = .data(Data("no certificate".utf8))
            }
            try await NamedBench.refuses("https://good.test", .untrustedCertificate) { $0.tls.trust = .data(Data()) }
        }

        @Test func `a failure is no end of the session`() async throws {
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

        @Test func `TLS where there is none is an error, and its absence where there is some an answer`() async throws {
            let ports = try await NginxServer.shared.value.ports
            try await NamedBench.refuses("https://127.0.0.1:\(ports.plain)", .secureConnectionFailed)
            #expect(try await NamedBench.get("http://127.0.0.1:\(ports.http2)").status != 200)
            #expect(try await NamedBench.get("http://127.0.0.1:\(ports.secure)").status == 400)
        }
    }

    // Keys.
    extension TrustTests {
        @Test func `a server with a key that is pinned opens`() async throws {
            let server = try await NginxServer.shared.value
            let pins = [try server.certificates.pin("strange"), try server.certificates.pin("server")]
            #expect(try await NamedBench.get("https://good.test") { $0.tls.pinnedKeys = pins }.status == 200)
        }

        @Test func `a server with another key is refused, and any if no key is allowed`() async throws {
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

        @Test func `a pinned key is no trust`() async throws {
            let server = try await NginxServer.shared.value
            let pin = try server.certificates.pin("strange")
            try await NamedBench.refuses("https://strange.test", .untrustedCertificate) { $0.tls.pinnedKeys = [pin] }
        }
    }

    // Versions.
    extension TrustTests {
        @Test func `the newest version that both know is spoken`() async throws {
            let ports = try await NginxServer.shared.value.ports
            let site = "https://127.0.0.1:"
            #expect(try await NamedBench.get("\(site)\(ports.tls1_2)").text == "HTTP/1.1 TLSv1.2 NONE")
            #expect(try await NamedBench.get("\(site)\(ports.tls1_3)").text == "HTTP/1.1 TLSv1.3 NONE")
            let limited = try await NamedBench.get("\(site)\(ports.http2)") { $0.tls.newestVersion = .tls1_2 }
            #expect(limited.text == "HTTP/2.0 TLSv1.2 NONE")
        }

        @Test func `a version that is too old or too new is refused`() async throws {
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
