// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    /// Tests suspend and hold at the end of a transfer, when libcurl has finished but events are still undelivered.
    @Suite(.timeLimit(.minutes(3)))
    struct SessionHoldTests {
        private let server: LoopbackServer
        private let session = CurlSession.direct()

        init() throws {
            server = try LoopbackServer()
            server.route("/other") { _ in .text("other") }
            server.route("/hinted") { _ in LoopbackAnswer(.head(103), .head(204)) }
        }

        /// Waits for another exchange, which takes a turn of the session's thread.
        private func letPass() async throws {
            #expect(try await session.run(server.url("/other")).text == "other")
        }

        @Test func `a receiver that holds at delayed headers receives nothing more until it proceeds`()
            async throws
        {
            let receiver = RecordingReceiver { event, task in
                switch event {
                case .informational: task.suspend()
                case .head: task.hold()
                default: break
                }
            }
            let task = try session.begin(server.url("/hinted"), receiver)
            _ = await receiver.record { !$0.informational.isEmpty }
            await server.counts { $0.answers >= 1 }
            for _ in 0..<3 { try await letPass() }
            #expect(receiver.record.head == nil)
            task.resume()
            _ = await receiver.record { $0.head != nil }
            for _ in 0..<3 { try await letPass() }
            #expect(receiver.record.ends == 0 && receiver.record.metrics == nil)
            task.proceed()
            let record = await receiver.end()
            #expect(record.isSuccess && record.status == 204 && record.metrics != nil && record.faults.isEmpty)
        }

        @Test func `upload progress during a suspension is delivered on resume`() async throws {
            let receiver = RecordingReceiver { event, task in
                if case .informational = event { task.suspend() }
            }
            let request = try NetworkRequest("POST", url: server.url("/hinted"), body: .data(Data("hello".utf8)))
            let task = session.makeTask(with: request, receiver: receiver)
            task.resume()
            _ = await receiver.record { !$0.informational.isEmpty }
            await server.counts { $0.answers >= 1 }
            for _ in 0..<3 { try await letPass() }
            #expect(receiver.record.sent == 0 && receiver.record.head == nil)
            task.resume()
            let record = await receiver.end()
            #expect(record.isSuccess && record.sent == 5 && record.status == 204 && record.faults.isEmpty)
        }

        @Test func `proceeding at the last moment of a transfer loses no event`() async throws {
            // The moment depends on the machine. SessionTaskTests covers every moment.
            for round in 0..<Rounds.count(ci: 40, soak: 2_000) {
                let receiver = RecordingReceiver { event, task in
                    guard case .informational = event else { return }
                    task.hold()
                    DispatchQueue.global().async { task.proceed() }
                }
                session.makeTask(with: try NetworkRequest(url: server.url("/hinted")), receiver: receiver).resume()
                let record = await receiver.end()
                try #require(record.isSuccess && record.status == 204 && record.metrics != nil, "round \(round)")
            }
        }
    }
#endif
