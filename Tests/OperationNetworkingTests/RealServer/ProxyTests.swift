// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.enabled(if: ServerPrograms.areThere, "Run Scripts/prepare-servers."), .timeLimit(.minutes(2)))
    struct ProxyTests {
        /// Runs a test with a session that reaches `good.test` only through a proxy.
        private func withProxy(
            _ site: String = "https://good.test", credentials: String? = nil,
            behaviour: ConnectProxy.Behaviour = .works,
            _ configure: (inout CurlSession.Configuration, ConnectProxy) -> Void = {
                $0.proxy = .url($1.url)
            }, _ body: (NamedBench, ConnectProxy) async throws -> Void
        ) async throws {
            let ports = try await NginxServer.shared.value.ports
            let proxy = ConnectProxy(
                ["good.test:443": ports.http2, "good.test:80": ports.plain], credentials: credentials, behaviour)
            let bench = try await NamedBench(site) { configuration in
                configuration.addressOverrides = [:]
                configure(&configuration, proxy)
            }
            try await body(bench, proxy)
            bench.closeSession()
            try await proxy.stopped()
        }

        @Test func `a request without TLS is sent to the proxy with its full URL`() async throws {
            try await withProxy("http://good.test") { bench, proxy in
                let record = try await bench.get("/seen")
                #expect(record.text == "||good.test")
                #expect(proxy.seen.map(\.line) == ["GET http://good.test/seen HTTP/1.1"])
            }
        }

        @Test func `requests with TLS share one tunnel and use HTTP/2 in it`()
            async throws
        {
            try await withProxy { bench, proxy in
                for _ in 0..<10 { #expect(try await bench.get("/spoken").text == "HTTP/2.0 TLSv1.3 NONE") }
                let runs = try (0..<20).map { _ in bench.start(try bench.request("GET", "/small")) }
                for run in runs { #expect(await run.end().bodyCount == 100) }
                #expect(proxy.seen.map(\.line) == ["CONNECT good.test:443 HTTP/1.1"])
                // The headers of the proxy are not part of any response.
                #expect(try await bench.get("/small").head?.headers["Via"] == nil)
            }
        }

        @Test func `an untrusted certificate is refused through a tunnel as well`() async throws {
            let ports = try await NginxServer.shared.value.ports
            let proxy = ConnectProxy(["strange.test:443": ports.http2])
            try await NamedBench.refuses("https://strange.test", .untrustedCertificate) {
                $0.addressOverrides = [:]
                $0.proxy = .url(proxy.url)
            }
            try await proxy.stopped()
        }

        @Test(arguments: ["https://good.test", "http://good.test"])
        func `the proxy receives its credentials, and the server does not`(_ site: String) async throws {
            for (user, password) in [("Aladdin", "open sesame"), ("käse%41", "a:b@c/d?e#%20f+g"), ("nobody", "")] {
                try await withProxy(site, credentials: "\(user):\(password)") {
                    $0.proxy = .url($1.url, user: user, password: password)
                } _: { bench, proxy in
                    let record = await bench.run(try bench.request("GET", "/seen", ["Authorization": "Bearer mine"]))
                    #expect(record.text == "Bearer mine||good.test", "\(String(describing: record.error))")
                    let seen = try #require(proxy.seen.first)
                    if site.hasPrefix("https") { #expect(seen["Authorization"] == nil) }
                }
            }
        }

        @Test func `missing or wrong proxy credentials fail with proxyFailed before anything is sent`()
            async throws
        {
            for user in [nil, "somebody"] {
                try await withProxy(credentials: "a:b") {
                    $0.proxy = .url($1.url, user: user)
                } _: { bench, _ in
                    let record = await bench.run(try bench.request("POST", "/small", body: .data(Data("secret".utf8))))
                    #expect(record.error?.code == .proxyFailed, "\(String(describing: record.error))")
                    #expect(record.error?.isUnsent == true && record.head == nil && record.sent == 0)
                }
            }
            try await withProxy("http://good.test", credentials: "a:b") { bench, _ in
                let record = try await bench.get("/small")
                #expect(record.status == 407)
                #expect(record.head?.headers["Proxy-Authenticate"] == "Basic realm=\"proxy\"")
            }
        }

        @Test(
            arguments: [
                "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno", "HTTP/1.1 502 Bad\r\nConnection: close\r\n\r\n",
                "HTTP/1.1 302 Found\r\nLocation: http://good.test/\r\nContent-Length: 0\r\n\r\n",
                "SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1 200 Fine\r\n\r\nthis is no TLS",
                "HTTP/1.1 407 Who\r\nProxy-Authenticate: Negotiate\r\n\r\n", "HTTP/1.1 200\r\nX: ",
            ])
        func `an invalid proxy response is an error and never delivered as the response`(_ text: String) async throws {
            try await withProxy(behaviour: .answers(text)) { bench, _ in
                let request = try bench.request("POST", "/small", body: .data(Data("secret".utf8))) {
                    $0.timeouts.connect = .milliseconds(300)
                }
                let record = await bench.run(request)
                let codes: [NetworkError.Code] = [.proxyFailed, .secureConnectionFailed, .timedOut, .invalidResponse]
                #expect(record.error.map { codes.contains($0.code) } == true, "\(String(describing: record.error))")
                #expect(record.error?.isUnsent == true && record.head == nil && record.sent == 0)
            }
        }

        @Test func `a proxy that closes the connection, stalls or is unreachable fails the request`() async throws {
            try await withProxy(behaviour: .breaksOff) { bench, _ in
                let record = try await bench.get("/small")
                #expect(record.error?.code == .proxyFailed, "\(String(describing: record.error))")
            }
            try await withProxy(behaviour: .stalls) { bench, proxy in
                let record = await bench.run(
                    try bench.request("GET", "/small") { $0.timeouts.connect = .milliseconds(100) })
                #expect(record.error?.code == .timedOut && record.error?.phase == .connecting)
                // The first request may have timed out before it arrived.
                let before = proxy.arrivals.count
                let run = bench.start(try bench.request("GET", "/small"))
                await proxy.arrivals.gate(at: before + 1).passage()
                run.task.cancel()
                #expect(await run.end().error?.code == .cancelled)
            }
            let nobody = LocalPort.free()
            let record = try await NamedBench.get("https://good.test") {
                $0.addressOverrides = [:]
                $0.proxy = .url("http://127.0.0.1:\(nobody)")
            }
            #expect(record.error?.code == .cannotConnect)
            let unknown = try await NamedBench.get("https://good.test") {
                $0.addressOverrides = [:]
                $0.proxy = .url("http://proxy.invalid:1")
            }
            #expect(unknown.error?.code == .cannotFindHost)
        }

        @Test func `requests to excepted hosts bypass the proxy`() async throws {
            let server = try await NginxServer.shared.value
            let proxy = ConnectProxy([:], .answers("HTTP/1.1 403 No\r\n\r\n"))
            let record = try await NamedBench.get("https://127.0.0.1:\(server.ports.http2)") {
                $0.proxy = .url(proxy.url, exceptions: ["example.com", "127.0.0.1"])
            }
            #expect(record.status == 200 && proxy.seen.isEmpty)
            try await proxy.stopped()
        }

        @Test func `a proxy can use TLS, and its certificate must be trusted`() async throws {
            let server = try await NginxServer.shared.value
            // nginx accepts requests in proxy form.
            let url = "https://127.0.0.1:\(server.ports.secure)"
            let record = try await NamedBench.get("http://good.test", "/small") {
                $0.addressOverrides = [:]
                $0.proxy = .url(url)
            }
            #expect(record.bodyCount == 100, "\(String(describing: record.error))")
            for trust in [CurlSession.TLS.Trust.system, .file(server.certificates.file("stranger.pem"))] {
                try await NamedBench.refuses("http://good.test", .untrustedCertificate) {
                    $0.addressOverrides = [:]
                    $0.proxy = .url(url)
                    $0.tls.trust = trust
                }
            }
        }
    }

    // These tests run in a separate process, because the environment of this process cannot be changed safely.
    extension ProxyTests {
        @Test func `environment variables set a proxy for each scheme`() async throws {
            let server = try await NginxServer.shared.value
            let ports = server.ports
            let proxy = ConnectProxy(
                ["good.test:443": ports.http2, "good.test:80": ports.plain], credentials: "Ali:open:se same")
            let url = "http://Ali:open%3Ase%20same@127.0.0.1:\(proxy.port)"
            let authority = server.certificates.authority.path
            let secure = try await EnvironmentProbe.run(
                ["https://good.test/spoken", authority], environment: ["https_proxy": url])
            #expect(secure == "200 HTTP/2.0 TLSv1.3 NONE")
            let plain = try await EnvironmentProbe.run(["http://good.test/seen"], environment: ["http_proxy": url])
            #expect(plain == "200 ||good.test")
            let all = try await EnvironmentProbe.run(
                ["https://good.test/spoken", authority], environment: ["ALL_PROXY": url])
            #expect(all == "200 HTTP/2.0 TLSv1.3 NONE")
            #expect(proxy.seen.count == 3)
            try await proxy.stopped()
        }

        @Test func `no_proxy sets exceptions, and HTTP_PROXY in uppercase is ignored`() async throws {
            let ports = try await NginxServer.shared.value.ports
            let target = "http://127.0.0.1:\(ports.plain)/seen"
            let proxy = ConnectProxy([:], .answers("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"))
            for environment in [
                ["http_proxy": proxy.url, "no_proxy": "example.com,127.0.0.1"],
                ["http_proxy": proxy.url, "no_proxy": "*"],
                // A CGI program receives this variable from the "Proxy" header of a request.
                ["HTTP_PROXY": proxy.url], [:],
            ] {
                let answer = try await EnvironmentProbe.run([target], environment: environment)
                #expect(answer == "200 ||127.0.0.1:\(ports.plain)")
            }
            #expect(proxy.seen.isEmpty)
            #expect(try await EnvironmentProbe.run([target], environment: ["http_proxy": proxy.url]) == "403 ")
            try await proxy.stopped()
        }
    }
#endif
