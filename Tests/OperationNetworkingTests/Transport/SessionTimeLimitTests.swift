// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.timeLimit(.minutes(3)))
    struct SessionTimeLimitTests {
        private let server: LoopbackServer

        init() throws {
            server = try LoopbackServer()
        }

        private func options(_ timeouts: TransferTimeouts) -> TransferOptions { TransferOptions(timeouts: timeouts) }

        @Test func `a dripping body exceeds the total limit exactly when it is reached`() async throws {
            let continues = (0..<4).map { _ in Gate() }
            server.route("/drip") { _ in
                continues.reduce(LoopbackAnswer(.head(200, ["Content-Length": "1000"]))) {
                    $0.followed(by: .send("x"), .stall(until: $1))
                }
            }
            let limit = TransferTimeouts(idle: .seconds(50), total: .seconds(100))
            let clock = SessionClock(), session = CurlSession.direct(by: clock)
            let recorder = RecordingReceiver()
            try session.begin(server.url("/drip"), options: options(limit), recorder)
            // Each leap is shorter than the idle limit.
            for (index, goOn) in continues.enumerated().dropLast() {
                _ = await recorder.record { $0.bodyCount > index }
                try await clock.leap(.seconds(30), noticedBy: session)
                #expect(recorder.record.ends == 0)
                goOn.open()
            }
            _ = await recorder.record { $0.bodyCount == 4 }
            try await clock.leap(.seconds(30), noticedBy: session)
            let record = await recorder.end()
            #expect(record.code == .timedOut && record.error?.phase == .receiving && record.ends == 1)
            #expect(record.error?.status == 200)
            #expect(try #require(record.metrics?.ended) >= .seconds(100) && record.bodyCount == 4)
        }

        @Test func `the limit for the first byte applies again after an informational response`() async throws {
            server.route("/hints") { _ in LoopbackAnswer(.head(103), .stall(until: Gate())) }
            let limit = TransferTimeouts(firstByte: .seconds(100), idle: .seconds(50))
            let clock = SessionClock(), session = CurlSession.direct(by: clock)
            let receiver = RecordingReceiver()
            try session.begin(server.url("/hints"), options: options(limit), receiver)
            _ = await receiver.record { !$0.informational.isEmpty }
            try await clock.leap(.seconds(60), noticedBy: session)
            #expect(receiver.record.ends == 0)
            try await clock.leap(.seconds(50), noticedBy: session)
            let error = await receiver.end().error
            #expect(error?.code == .timedOut && error?.phase == .awaitingResponse)
            #expect(error?.message.contains("timeouts.firstByte") == true)
        }

        @Test
        func `responses that arrive while the session's thread is blocked do not exceed their limits`() async throws {
            let count = 700
            let gate = Gate()
            server.route("/late") { _ in .text("late").after(gate) }
            server.route("/first") { _ in .text("first") }
            let clock = SessionClock()
            let session = CurlSession.direct(by: clock) {
                $0.maximumConnectionsPerHost = 1_000
                $0.maximumConnections = 1_000
            }
            let limit = TransferTimeouts(firstByte: .seconds(50))
            let recorders = (0..<count).map { _ in RecordingReceiver() }
            for recorder in recorders { try session.begin(server.url("/late"), options: options(limit), recorder) }
            _ = await server.heads(atLeast: count)
            let (isKept, continues) = (Gate(), Gate())
            let keeper = RecordingReceiver { event, _ in
                guard case .head = event else { return }
                isKept.open()
                continues.wait()
            }
            session.makeTask(with: try NetworkRequest(url: server.url("/first")), receiver: keeper).resume()
            await isKept.passage()
            gate.open()
            await server.counts { $0.answers == count + 1 }
            clock.leap(.seconds(51))
            continues.open()
            for recorder in recorders {
                let record = await recorder.end()
                #expect(record.text == "late" && record.error == nil)
            }
        }
    }
#endif
