// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.timeLimit(.minutes(3)))
    struct SessionConnectionTests {
        private let server: LoopbackServer
        private let session = CurlSession.direct()

        init() throws {
            server = try LoopbackServer()
        }

        private func run(_ count: Int, on session: CurlSession, _ url: URL) async throws -> [RecordingReceiver.Record] {
            let recorders = (0..<count).map { _ in RecordingReceiver() }
            for recorder in recorders {
                session.makeTask(with: try NetworkRequest(url: url), receiver: recorder).resume()
            }
            var records: [RecordingReceiver.Record] = []
            for recorder in recorders { records.append(await recorder.end()) }
            return records
        }

        @Test func `connections are limited per host and in total`() async throws {
            let other = try LoopbackServer()
            for place in [server, other] {
                place.route("/") { _ in LoopbackAnswer.text("x").after(.milliseconds(5)) }
            }
            var configuration = CurlSession.Configuration()
            configuration.maximumConnectionsPerHost = 3
            configuration.maximumConnections = 4
            let session = CurlSession(configuration: configuration)
            #expect(try await run(30, on: session, server.url()).allSatisfy { $0.text == "x" })
            #expect(server.counts.connections <= 3)
            async let first = run(30, on: session, server.url())
            async let second = run(30, on: session, other.url())
            let records = try await first + second
            #expect(records.allSatisfy { $0.text == "x" && $0.error == nil })
            // Either server may be the last one to notice that a connection was closed.
            await withTaskGroup { group in
                for place in [server, other] {
                    group.addTask {
                        _ = await place.counts { _ in
                            server.counts.openConnections + other.counts.openConnections <= 4
                        }
                    }
                }
                await group.next()
                group.cancelAll()
            }
            #expect(server.counts.openConnections + other.counts.openConnections <= 4)
        }

        /// Creates a server that closes a connection at its second request.
        private func breaking() throws -> LoopbackServer {
            server.routeEarly("/") { request in
                request.numberOnConnection == 0
                    ? LoopbackAnswer(.awaitBody).followed(by: .head(200, ["Content-Length": "2"]), .send("ok"))
                    : .hangUp
            }
            return server
        }

        @Test func `an idempotent request is sent again if its reused connection breaks`() async throws {
            let server = try breaking()
            #expect(try await session.run(server.url()).text == "ok")
            #expect(try await session.run(server.url()).text == "ok")
            #expect(server.counts.heads == 3)
            let body = RequestBody.data(Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0) }))
            let record = try await session.run(server.url(), "PUT", body: body)
            try #require(record.text == "ok" && record.isInOrder, "\(record)")
            let last = try #require(await server.requests(atLeast: 3).last)
            #expect(last.bodyCount == 200_000 && last.isComplete)
            #expect(last.body.elsewhere == nil)
        }

        /// The break is noticed during the upload or during the wait for the response.
        ///
        /// Both must have the same result.
        @Test func `a large body is sent again wherever its reused connection breaks`() async throws {
            let server = try breaking()
            let body = RequestBody.data(Data(count: 4_000_000))
            for _ in 0..<25 {
                let record = try await session.run(server.url(), "PUT", body: body)
                try #require(record.text == "ok" && record.isInOrder, "\(record)")
            }
            #expect(server.counts.heads == 49)
        }

        @Test(arguments: [0, 10, 200_000])
        func `a POST is never sent twice`(count: Int) async throws {
            let server = try breaking()
            #expect(try await session.run(server.url()).text == "ok")
            let record = try await session.run(server.url(), "POST", body: .data(Data(count: count)))
            #expect(record.code == .connectionLost && record.error?.isUnsent == false, "\(record)")
            #expect(server.counts.heads == 2)
            #expect(try await session.run(server.url()).text == "ok")
        }

        @Test func `a one-time body is not sent again`() async throws {
            let server = try breaking()
            #expect(try await session.run(server.url()).text == "ok")
            let body = RequestBody.stream(length: 400_000, canBeSentAgain: false) {
                PieceProducer(Array(repeating: 0, count: 400_000), size: 50_000)
            }
            let record = try await session.run(server.url(), "PUT", body: body)
            #expect(record.code == .bodyNotRepeatable || record.code == .connectionLost, "\(record)")
            #expect(server.requests.filter { $0.method == "PUT" }.count == 1)
        }

        @Test func `a session connects over IPv6, Unix-domain sockets and address overrides`() async throws {
            let path = FileManager.default.temporaryDirectory.appendingPathComponent(
                "s\(UInt32.random(in: 0...(.max)))"
            ).path
            let options = with(LoopbackServer.Options()) { $0.addresses = [.ipv4, .ipv6, .unixSocket(path: path)] }
            let server = try LoopbackServer(options)
            server.route("/") { request in .text(request["Host"] ?? "") }
            let six = try #require(server.addresses.first { "\($0)".hasPrefix("[") })
            #expect(try await CurlSession.direct().run(server.url("/", at: six)).text == "\(six)")

            var configuration = CurlSession.Configuration()
            configuration.unixSocketPath = path
            let url = try #require(URL(string: "http://example.com/"))
            #expect(try await CurlSession(configuration: configuration).run(url).text == "example.com")

            configuration = CurlSession.Configuration()
            configuration.addressOverrides = ["example.com:80": "127.0.0.1:\(server.port)"]
            let record = try await CurlSession(configuration: configuration).run(url)
            #expect(record.text == "example.com")
            #expect(record.metrics?.remoteAddress == "127.0.0.1:\(server.port)")
        }

        @Test func `an explicit proxy receives the full URL and its credentials`() async throws {
            let proxy = try LoopbackServer()
            proxy.route("http://example.com/a") { request in .text(request["Proxy-Authorization"] ?? "") }
            var configuration = CurlSession.Configuration()
            configuration.proxy = .url("http://127.0.0.1:\(proxy.port)", user: "us%41", password: "e:r%42")
            let url = try #require(URL(string: "http://example.com/a"))
            let record = try await CurlSession(configuration: configuration).run(url)
            #expect(record.text == "Basic \(Data("us%41:e:r%42".utf8).base64EncodedString())", "\(record)")
        }

        @Test func `a receiver may close its session, and a released session completes its task`() async throws {
            server.route("/") { _ in .text("x") }
            let recorder = RecordingReceiver { event, _ in if case .head = event { session.close() } }
            session.makeTask(with: try NetworkRequest(url: server.url()), receiver: recorder).resume()
            #expect(await recorder.end().ends == 1)
            // After the end, the calls of a task have no effect.
            let other = RecordingReceiver { event, task in
                guard case .end = event else { return }
                task.cancel()
                task.resume()
                task.suspend()
            }
            CurlSession.direct().makeTask(with: try NetworkRequest(url: server.url()), receiver: other).resume()
            let record = await other.end()
            #expect(record.text == "x" && record.ends == 1 && record.error == nil && record.isInOrder)
            await server.counts { $0.openConnections == 0 }
        }

        @Test func `idle connections are closed after idleLifetime`() async throws {
            server.route("/") { _ in .text("x") }
            let configuration = with(CurlSession.Configuration()) { $0.idleLifetime = .milliseconds(100) }
            let session = CurlSession(configuration: configuration)
            for _ in 0..<3 {
                #expect(try await session.run(server.url()).text == "x")
                await server.counts { $0.openConnections == 0 }
            }
        }

        @Test func `a large body arrives completely in parts of limited size`() async throws {
            let count = 32 << 20
            server.route("/big") { _ in .repeating(TestPattern.block, count: count) }
            let largest = Locked(0)
            let receiver = RecordingReceiver { event, _ in
                if case .bytes(let count) = event { largest.withLock { $0 = max($0, count) } }
            }
            session.makeTask(with: try NetworkRequest(url: server.url("/big")), receiver: receiver).resume()
            let record = await receiver.end()
            #expect(record.isSuccess && record.bodyCount == count && record.isPattern && record.faults.isEmpty)
            #expect(largest.withLock { $0 } <= 64 << 10)
        }

        @Test func `metrics report the connection and the phases`() async throws {
            server.route("/m") { _ in .text("Hello") }
            let first = try #require(try await session.run(server.url("/m")).metrics)
            #expect(!first.isConnectionReused && first.connected != nil && first.version == .http1_1)
            #expect(first.remoteAddress == "127.0.0.1:\(server.port)" && first.bodyBytesReceived == 5)
            #expect(first.headerBytesReceived > 20)
            let moments = [first.slotGranted, first.connected, first.requestBegan, first.firstByte, first.ended]
            #expect(moments.compactMap { $0 } == moments.compactMap { $0 }.sorted() && !moments.contains(nil))
            let second = try #require(try await session.run(server.url("/m")).metrics)
            #expect(second.isConnectionReused && second.connected == nil && server.counts.connections == 1)
        }

        @Test func `the libcurl version is available`() {
            #expect(CurlSession.problem == nil)
            #expect(CurlSession.libraryVersion?.isEmpty == false)
        }

        @Test(arguments: [
            "http://anna:s3cret@127.0.0.1:99999", "http://anna:s3 cret@127.0.0.1:1", "odd://anna:s3cret@127.0.0.1:1",
            "http://anna:s3cret@[::1:1", "http://anna:s3cret@127.0.0.1:1",
        ])
        func `no error contains the password of a proxy, even if its URL is malformed`(_ url: String) async throws {
            let server = try LoopbackServer()
            let session = CurlSession.direct { $0.proxy = .url(url) }
            let error = try #require(try await session.run(server.url("/")).error)
            #expect(!"\(error)".contains("s3"), "\(error)")
            session.close()
        }

        /// Returns the local socket of a connection to the port.
        private static func socket(connectedTo port: Int) -> Int32? {
            (Int32(3)..<4096).first { descriptor in
                var address = sockaddr_in()
                var length = socklen_t(MemoryLayout<sockaddr_in>.size)
                let result = withUnsafeMutablePointer(to: &address) { pointer in
                    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &length) }
                }
                return result == 0 && address.sin_family == AF_INET && Int(UInt16(bigEndian: address.sin_port)) == port
            }
        }

        private static func option(_ level: Int32, _ name: Int32, of socket: Int32) -> Int32 {
            var value: Int32 = -1
            var length = socklen_t(MemoryLayout<Int32>.size)
            getsockopt(socket, level, name, &value, &length)
            return value
        }

        @Test(arguments: SessionKind.allCases)
        func `connections use TCP keepalive to detect a server that disappeared`(kind: SessionKind)
            async throws
        {
            let bench = try Bench(kind)
            defer { bench.closeSession() }
            bench.server.route("GET", "/") { _ in .stalling(after: "01234") }
            let stream = try await bench.session.stream(NetworkRequest(url: bench.server.url("/")))
            let socket = try #require(Self.socket(connectedTo: Int(bench.server.port)))
            #expect(Self.option(SOL_SOCKET, SO_KEEPALIVE, of: socket) == 1)
            #expect(Self.option(Int32(IPPROTO_TCP), TCP_KEEPIDLE, of: socket) == 60)
            #expect(Self.option(Int32(IPPROTO_TCP), TCP_KEEPINTVL, of: socket) == 15)
            withExtendedLifetime(stream) {}
        }

        /// Creates two servers at the same port, one for each kind of address.
        private func makePair(
            _ change: (inout LoopbackServer.Options) -> Void
        ) throws -> (six: LoopbackServer, four: LoopbackServer) {
            var problem: (any Error)?
            for _ in 0..<20 {
                var options = LoopbackServer.Options()
                options.addresses = [.ipv6]
                change(&options)
                let six = try LoopbackServer(options)
                options = LoopbackServer.Options()
                options.addresses = [.ipv4(port: six.port)]
                do { return (six, try LoopbackServer(options)) } catch { problem = error }
            }
            throw try #require(problem)
        }

        @Test func `if one address of a host does not respond, another one is used`() async throws {
            let (deaf, server) = try makePair {
                $0.accepts = false
                $0.backlog = 0
            }
            server.route("/") { .text($0["Host"] ?? "") }
            // These requests fill the backlog, so later connections receive no reply at all.
            let session = CurlSession.direct { $0.maximumConnectionsPerHost = 20 }
            let endless = TransferOptions(timeouts: .none)
            for _ in 0..<8 {
                let request = try NetworkRequest(url: deaf.url(), options: endless)
                session.makeTask(with: request, receiver: RecordingReceiver()).resume()
            }
            let url = try #require(URL(string: "http://localhost:\(server.port)/"))
            let record = try await session.run(url)
            #expect(record.text == "localhost:\(server.port)", "\(String(describing: record.error))")
            #expect(record.metrics?.remoteAddress == "127.0.0.1:\(server.port)")
            session.close()
            await deaf.stopped()
            await server.stopped()
        }

        @Test func `if one address of a host refuses, another one is used`() async throws {
            let (six, server) = try makePair { _ in }
            await six.stopped()
            server.route("/") { _ in .text("hello") }
            let url = try #require(URL(string: "http://localhost:\(server.port)/"))
            #expect(try await CurlSession.direct().run(url).text == "hello")
            await server.stopped()
        }
    }

    extension [UInt8] {
        /// The first index at which the bytes do not count up.
        fileprivate var elsewhere: Int? {
            indices.first { self[$0] != UInt8(truncatingIfNeeded: $0) }
        }
    }
#endif
