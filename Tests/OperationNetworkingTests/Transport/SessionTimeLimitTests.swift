// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationCore
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.timeLimit(.minutes(3)))
    struct SessionTimeLimitTests {
        private let server: LoopbackServer

        init() throws {
            server = try LoopbackServer()
            server.route("/silent") { _ in .silence }
        }

        private func options(_ timeouts: TransferTimeouts) -> TransferOptions { TransferOptions(timeouts: timeouts) }

        private func expectTimeout(
            _ record: TransferRecorder.Record, _ phase: NetworkError.Phase, after limit: Duration
        ) throws {
            #expect(record.code == .timedOut && record.error?.phase == phase && record.ends.count == 1)
            let ended = try #require(record.metrics.first?.ended)
            // The timeout must not be early. How late it is depends on the machine.
            #expect(ended >= limit, "\(ended)")
        }

        @Test func `a server that does not respond exceeds the firstByte limit`() async throws {
            let limit = TransferTimeouts(firstByte: .milliseconds(150))
            let record = try await CurlSession.direct().run(server.url("/silent"), options: options(limit))
            try expectTimeout(record, .awaitingResponse, after: .milliseconds(150))
        }

        @Test func `a body that stops arriving exceeds the idle limit`() async throws {
            server.route("/stall") { _ in
                LoopbackAnswer(.head(200, ["Content-Length": "9"]), .send("abc"), .stallForever)
            }
            let limit = TransferTimeouts(idle: .seconds(50))
            let (session, leap) = makeLeapingSession()
            let receivesAll = Gate()
            let recorder = TransferRecorder(onBytes: { _, record in if record.bodyCount == 3 { receivesAll.open() } })
            try session.begin(server.url("/stall"), options: options(limit), recorder)
            await receivesAll.passage()
            try await leap(.seconds(51))
            let record = await recorder.ended()
            try expectTimeout(record, .receiving, after: .seconds(50))
            #expect(record.text == "abc" && record.error?.status == 200)
        }

        @Test func `a dripping body exceeds the total limit exactly when it is reached`() async throws {
            let (came, continues) = ((0..<4).map { _ in Gate() }, (0..<4).map { _ in Gate() })
            server.route("/drip") { _ in
                continues.reduce(LoopbackAnswer(.head(200, ["Content-Length": "1000"]))) {
                    $0.followed(by: .send("x"), .stall(until: $1))
                }
            }
            let limit = TransferTimeouts(idle: .seconds(50), total: .seconds(100))
            let (session, leap) = makeLeapingSession()
            let recorder = TransferRecorder(onBytes: { _, record in came[record.bodyCount - 1].open() })
            try session.begin(server.url("/drip"), options: options(limit), recorder)
            // Each leap is shorter than the idle limit.
            for (cameOne, goOn) in zip(came, continues).dropLast() {
                await cameOne.passage()
                try await leap(.seconds(30))
                #expect(recorder.now.ends.isEmpty)
                goOn.open()
            }
            await came[3].passage()
            try await leap(.seconds(30))
            let record = await recorder.ended()
            try expectTimeout(record, .receiving, after: .seconds(100))
            #expect(record.bodyCount == 4)
        }

        @Test func `an upload that stalls exceeds the idle limit`() async throws {
            server.routeEarly("POST", "/up") { _ in LoopbackAnswer(.stopReading, .stallForever) }
            let limit = TransferTimeouts(firstByte: .seconds(30), idle: .milliseconds(200))
            let body = RequestBody.data(Data(count: 64 << 20))
            let record = try await CurlSession.direct().run(
                server.url("/up"), "POST", body: body, options: options(limit))
            try expectTimeout(record, .sending, after: .milliseconds(200))
        }

        /// Creates a session with a clock that the test advances.
        ///
        /// The session notices at the next request.
        private func makeLeapingSession(
            _ change: (inout CurlSession.Configuration) -> Void = { _ in }
        ) -> (session: CurlSession, leap: @Sendable (Duration) async throws -> Void) {
            let clock = SessionClock()
            let session = CurlSession.direct(by: clock, change)
            return (session, { duration in try await clock.leap(duration, noticedBy: session) })
        }

        @Test func `waiting for a slot does not count toward the limits`() async throws {
            let (session, leap) = makeLeapingSession { $0.maximumConnectionsPerHost = 1 }
            let gate = Gate()
            server.route("/slow") { _ in .text("slow").after(gate) }
            let limit = TransferTimeouts(firstByte: .seconds(20), total: .seconds(20))
            let recorders = (0..<4).map { _ in TransferRecorder() }
            for (number, recorder) in recorders.enumerated() {
                try session.begin(server.url("/slow"), options: options(number == 0 ? .none : limit), recorder)
            }
            _ = await server.heads(atLeast: 1)
            // After this request, the session knows all of them.
            try await leap(.zero)
            try await leap(.seconds(21))
            #expect(recorders.allSatisfy { $0.now.ends.isEmpty })
            gate.open()
            for recorder in recorders { #expect(await recorder.ended().text == "slow") }
            let last = await recorders[3].ended()
            #expect(try #require(last.metrics.first?.slotGranted) > .seconds(20))
        }

        @Test func `the time of a suspension does not count toward the limits`() async throws {
            server.route("/two") { _ in
                LoopbackAnswer(.head(200, ["Content-Length": "2"]), .send("a"), .pause(.milliseconds(20)), .send("b"))
            }
            let paused = Gate()
            let recorder = TransferRecorder(onBytes: { task, _ in
                guard !paused.isOpen else { return }
                task.suspend()
                paused.open()
            })
            let limit = TransferTimeouts(idle: .seconds(30), total: .seconds(30))
            let request = try NetworkRequest(url: server.url("/two"), options: options(limit))
            let (session, leap) = makeLeapingSession()
            let task = session.makeTask(with: request, receiver: recorder)
            task.resume()
            await paused.passage()
            // The session has processed the pause when another request has completed.
            try await leap(.zero)
            try await leap(.seconds(31))
            #expect(recorder.now.ends.isEmpty)
            task.resume()
            let record = await recorder.ended()
            #expect(record.text == "ab" && record.error == nil)
            #expect(try #require(record.metrics.first?.paused) >= .seconds(30))
        }

        @Test func `a leap of the clock exceeds a running limit`() async throws {
            let (session, leap) = makeLeapingSession()
            let limit = TransferTimeouts(firstByte: .seconds(50))
            let recorder = TransferRecorder()
            try session.begin(server.url("/silent"), options: options(limit), recorder)
            _ = await server.heads(atLeast: 1)
            try await leap(.seconds(51))
            try expectTimeout(await recorder.ended(), .awaitingResponse, after: .seconds(50))
        }

        @Test
        func `responses that arrive while the session's thread is blocked do not exceed their limits`() async throws {
            let count = 700
            let gate = Gate()
            server.route("/late") { _ in .text("late").after(gate) }
            server.route("/first") { _ in .text("first") }
            var configuration = CurlSession.Configuration()
            configuration.proxy = .none
            configuration.maximumConnectionsPerHost = 1_000
            configuration.maximumConnections = 1_000
            let lead = Locked(Duration.zero)
            let session = CurlSession(configuration: configuration, clockOffset: { lead.withLock { $0 } })
            let limit = TransferTimeouts(firstByte: .seconds(50))
            let recorders = (0..<count).map { _ in TransferRecorder() }
            for recorder in recorders {
                try session.begin(server.url("/late"), options: options(limit), recorder)
            }
            _ = await server.heads(atLeast: count)
            let (isKept, continues) = (Gate(), Gate())
            let keeper = TransferRecorder(onHead: { _, _ in
                isKept.open()
                continues.wait()
            })
            session.makeTask(with: try NetworkRequest(url: server.url("/first")), receiver: keeper).resume()
            await isKept.passage()
            gate.open()
            await server.counts { $0.answers == count + 1 }
            lead.withLock { $0 = .seconds(51) }
            continues.open()
            for recorder in recorders {
                let record = await recorder.ended()
                #expect(record.text == "late" && record.error == nil)
            }
        }

        @Test func `a connection that is not established in time exceeds the connect limit`() async throws {
            var listening = LoopbackServer.Options()
            listening.backlog = 0
            listening.accepts = false
            let deaf = try LoopbackServer(listening)
            let configuration = with(CurlSession.Configuration()) { $0.maximumConnectionsPerHost = 50 }
            let session = CurlSession(configuration: configuration)
            let limit = TransferTimeouts(connect: .milliseconds(200), firstByte: .milliseconds(900))
            let recorders = (0..<10).map { _ in TransferRecorder() }
            for recorder in recorders {
                try session.begin(deaf.url(), options: options(limit), recorder)
            }
            var phases: [NetworkError.Phase: Int] = [:]
            for recorder in recorders {
                let record = await recorder.ended()
                #expect(record.code == .timedOut)
                if let error = record.error { phases[error.phase, default: 0] += 1 }
            }
            // The system accepts one or two connections for the server. The other requests have no connection.
            #expect(phases[.connecting] ?? 0 >= 7, "\(phases)")
        }
    }
#endif
