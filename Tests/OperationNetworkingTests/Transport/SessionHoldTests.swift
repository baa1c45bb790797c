// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationCore
    import OperationNetworking
    import OperationTestKit
    import Testing

    /// Brakes at the very end of a transfer, when libcurl is done and something is still to be told.
    @Suite(.timeLimit(.minutes(3)))
    struct SessionHoldTests {
        private let server: LoopbackServer
        private let session = CurlSession.direct()

        init() throws {
            server = try LoopbackServer()
            server.route("/other") { _ in .text("other") }
            server.route("/hinted") { _ in LoopbackAnswer(.head(103), .head(204)) }
        }

        /// Another exchange passes, and with it a turn of the session's thread.
        private func letPass() async throws {
            #expect(try await session.run(server.url("/other")).text == "other")
        }

        @Test func `a receiver that holds at a head which was held back hears nothing more until it proceeds`()
            async throws
        {
            let receiver = RecordingReceiver { event, task in
                switch event {
                case .informational: task.suspend()
                case .head: task.hold()
                default: break
                }
            }
            let task = session.makeTask(with: try NetworkRequest(url: server.url("/hinted")), receiver: receiver)
            task.resume()
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

        @Test func `the progress of a body is told when the task is resumed, and not before`() async throws {
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

        @Test func `a brake that is let go of at the last moment loses no event`() async throws {
            // Which moment that is, is left to the machine; SessionTaskTests has each of them.
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
