// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationCore
    import OperationNetworking
    import OperationTestKit
    import Testing

    /// Time limits of tasks that are held back, by a clock that stands still but for what a test has it leap.
    @Suite(.timeLimit(.minutes(3)))
    struct SessionPauseLimitTests {
        private let clock = SessionClock(stands: true)
        private let session: CurlSession

        init() {
            session = CurlSession.direct(by: clock) { $0.maximumConnectionsPerHost = 20 }
        }

        /// A server that does not take connections; the system takes the first, and that is all that is done with them.
        private func makeDeafServer(backlog: Int = 10) throws -> LoopbackServer {
            var options = LoopbackServer.Options()
            options.accepts = false
            options.backlog = backlog
            return try LoopbackServer(options)
        }

        private func makeTask(
            _ url: URL, _ timeouts: TransferTimeouts, _ recorder: TransferRecorder
        ) throws -> any NetworkTask {
            let request = try NetworkRequest(url: url, options: TransferOptions(timeouts: timeouts))
            return session.makeTask(with: request, receiver: recorder)
        }

        private func pass(_ duration: Duration = .zero) async throws {
            try await clock.leap(duration, noticedBy: session)
        }

        private func expectConnectTimeout(_ record: TransferRecorder.Record) {
            #expect(record.code == .timedOut && record.error?.phase == .connecting && record.ends.count == 1)
            #expect(record.error?.isUnsent == true, "\(String(describing: record.error))")
        }

        @Test(arguments: [false, true])
        func `no limit runs while a connection is made for a task that is held`(isHeldBefore: Bool) async throws {
            // With nobody to answer it, TLS is never agreed upon.
            let deaf = try makeDeafServer()
            let url = try #require(URL(string: "https://127.0.0.1:\(deaf.port)/"))
            let recorder = TransferRecorder()
            let limit = Duration.seconds(20)
            let task = try makeTask(url, TransferTimeouts(connect: limit, total: limit), recorder)
            if isHeldBefore { task.hold() }
            task.resume()
            try await pass()
            task.hold()
            try await pass(limit * 2)
            #expect(recorder.now.ends.isEmpty)
            task.proceed()
            try await pass(limit - .seconds(1))
            #expect(recorder.now.ends.isEmpty)
            try await pass(.seconds(2))
            expectConnectTimeout(await recorder.ended())
            await deaf.stopped()
        }

        @Test func `where libcurl gives up a connection before its time, another one is begun`() async throws {
            let deaf = try makeDeafServer(backlog: 0)
            // They take what the system has room for; what comes later is not even told so.
            let first = try (0..<8).map { _ in try makeTask(deaf.url(), .none, TransferRecorder()) }
            for task in first { task.resume() }
            try await pass()
            let recorder = TransferRecorder()
            let limit = Duration.milliseconds(200)
            let task = try makeTask(deaf.url(), TransferTimeouts(connect: limit), recorder)
            task.resume()
            // While our clock stands still libcurl's goes on, and is looked at with each request.
            let start = ContinuousClock.now
            while start.duration(to: .now) < limit * 4 { try await pass() }
            #expect(recorder.now.ends.isEmpty, "\(recorder.now)")
            try await pass(limit * 2)
            expectConnectTimeout(await recorder.ended())
            await deaf.stopped()
        }

        /// A task that has received a part of a body, and whose session is kept by a receiver of another task.
        private struct Kept {
            let task: any NetworkTask
            let recorder: TransferRecorder
            let lastPart: Gate
            let letGo: Gate
        }

        private func makeKept(_ server: LoopbackServer, _ limit: Duration) async throws -> Kept {
            let (lastPart, hasBegun, isKept, letGo) = (Gate(), Gate(), Gate(), Gate())
            server.route("/two") { _ in
                LoopbackAnswer(.head(200, ["Content-Length": "2"]), .send("a"), .stall(until: lastPart), .send("b"))
            }
            server.route("/keep") { _ in .text("keep") }
            let recorder = TransferRecorder(onBytes: { _, _ in hasBegun.open() })
            let task = try makeTask(server.url("/two"), TransferTimeouts(idle: limit, total: limit), recorder)
            task.resume()
            await hasBegun.passage()
            let keeper = TransferRecorder(onHead: { _, _ in
                isKept.open()
                letGo.wait()
            })
            try makeTask(server.url("/keep"), .none, keeper).resume()
            await isKept.passage()
            return Kept(task: task, recorder: recorder, lastPart: lastPart, letGo: letGo)
        }

        @Test(arguments: [false, true])
        func `no limit runs from the call that holds a task back, however late its session comes by`(
            isHeld: Bool
        ) async throws {
            let server = try LoopbackServer()
            let limit = Duration.seconds(20)
            let kept = try await makeKept(server, limit)
            if isHeld { kept.task.hold() } else { kept.task.suspend() }
            clock.leap(limit * 2)
            kept.letGo.open()
            try await pass()
            #expect(kept.recorder.now.ends.isEmpty)
            if isHeld { kept.task.proceed() } else { kept.task.resume() }
            try await pass(limit / 2)
            kept.lastPart.open()
            let record = await kept.recorder.ended()
            #expect(record.text == "ab" && record.error == nil)
            #expect(try #require(record.metrics.first?.paused) >= limit)
            await server.stopped()
        }

        @Test func `a pause of which its session never heard is left out, too, and the limit holds afterwards`()
            async throws
        {
            let server = try LoopbackServer()
            let limit = Duration.seconds(20)
            let kept = try await makeKept(server, limit)
            kept.task.suspend()
            clock.leap(limit * 2)
            kept.task.resume()
            kept.letGo.open()
            try await pass(limit / 2)
            #expect(kept.recorder.now.ends.isEmpty)
            try await pass(limit)
            let record = await kept.recorder.ended()
            #expect(record.code == .timedOut && record.error?.phase == .receiving && record.text == "a")
            #expect(try #require(record.metrics.first?.paused) >= limit)
            await server.stopped()
        }
    }
#endif
