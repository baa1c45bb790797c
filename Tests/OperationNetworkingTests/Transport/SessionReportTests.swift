// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    /// Tests how a session reports the progress of a failed or canceled request.
    @Suite(.timeLimit(.minutes(3)))
    struct SessionReportTests {
        private let server: LoopbackServer
        private let session = CurlSession.direct()

        init() throws {
            server = try LoopbackServer()
            server.route("/small") { _ in .text("small") }
            server.route("/other") { _ in .text("other") }
        }

        private func post(_ path: String) throws -> NetworkRequest {
            try NetworkRequest("POST", url: server.url(path), body: .data(Data("body".utf8)))
        }

        /// Starts a POST whose response is complete except for its end, which the receiver holds back.
        private func held() async throws -> (task: any NetworkTask, recorder: RecordingReceiver) {
            let recorder = RecordingReceiver { if case .bytes = $0 { $1.hold() } }
            let task = session.makeTask(with: try post("/small"), receiver: recorder)
            task.resume()
            await server.counts { $0.answers == 1 }
            #expect(try await session.run(server.url("/other")).text == "other")
            #expect(recorder.record.text == "small" && recorder.record.ends == 0)
            return (task, recorder)
        }

        @Test(arguments: [NetworkError.Code.cancelled, .sessionClosed])
        func `a processed request is not reported as unsent when it is canceled or the session is closed`(
            code: NetworkError.Code
        ) async throws {
            let (task, recorder) = try await held()
            if code == .cancelled { task.cancel() } else { session.close() }
            let error = await recorder.end().error
            #expect(error?.code == code && error?.phase == .receiving && error?.isUnsent == false)
        }

        @Test func `a processed request is not reported as unsent when it is canceled at its end`() async throws {
            let receiver = RecordingReceiver { event, task in
                if case .metrics = event { task.cancel() }
            }
            session.makeTask(with: try post("/small"), receiver: receiver).resume()
            let record = await receiver.end()
            #expect(record.error?.code == .cancelled && record.error?.phase == .receiving)
            #expect(record.error?.isUnsent == false && record.text == "small")
        }

        @Test(arguments: ["POST", "PUT"], ["no", ""])
        func `a 417 response to Expect is delivered as the only response`(
            _ method: String, _ text: String
        ) async throws {
            server.routeEarly("/no") { _ in
                let answer = LoopbackAnswer.text(text, status: 417)
                return text.isEmpty ? answer : answer.with("Connection", "close")
            }
            let options = with(TransferOptions()) { $0.expectsContinue = true }
            let record = try await session.run(
                server.url("/no"), method, body: .data(Data(count: 1 << 20)), options: options)
            #expect(record.heads.map(\.status) == [417] && record.text == text)
            #expect(record.error == nil && record.isInOrder, "\(String(describing: record.error))")
            #expect(server.counts.heads == 1)
            #expect(try await session.run(server.url("/other")).text == "other")
        }

        @Test func `a 417 response whose body libcurl discards fails with truncatedBody`() async throws {
            server.routeEarly("/no") { _ in .text("no", status: 417) }
            let options = with(TransferOptions()) { $0.expectsContinue = true }
            let record = try await session.run(
                server.url("/no"), "POST", body: .data(Data(count: 1 << 20)), options: options)
            #expect(record.code == .truncatedBody && record.error?.status == 417 && record.error?.isUnsent == false)
            #expect(record.heads.count == 1 && record.isInOrder && server.counts.heads == 1)
        }

        @Test func `a 417 response with a truncated body fails with truncatedBody`() async throws {
            server.routeEarly("/cut") { _ in
                LoopbackAnswer(
                    .head(417, ["Content-Length": "1000", "Connection": "close"]),
                    .send(Array(repeating: 65, count: 500)),
                    .close)
            }
            let options = with(TransferOptions()) { $0.expectsContinue = true }
            let record = try await session.run(
                server.url("/cut"), "POST", body: .data(Data(count: 1 << 20)), options: options)
            #expect(record.code == .truncatedBody && record.bodyCount <= 500 && record.isInOrder)
        }

        @Test func `truncated headers are named in the error message`() async throws {
            server.route("/cut") { _ in LoopbackAnswer(.send("HTTP/1.1 200 OK\r\nX-A: b\r\n"), .close) }
            let error = try await session.run(server.url("/cut")).error
            #expect(error?.message.contains("ended before the headers") == true, "\(String(describing: error))")
            #expect(error?.phase == .awaitingResponse && error?.isUnsent == false)
        }

        @Test func `an informational response does not end the awaitingResponse phase`() async throws {
            let isOutcomeReported = Gate()
            server.route("/hints") { _ in LoopbackAnswer(.head(103), .stall(until: Gate())) }
            let receiver = RecordingReceiver { event, _ in
                if case .informational = event { isOutcomeReported.open() }
            }
            let task = try session.begin(server.url("/hints"), receiver)
            await isOutcomeReported.passage()
            task.cancel()
            let record = await receiver.end()
            #expect(record.error?.phase == .awaitingResponse && record.error?.isUnsent == false)
        }

        @Test func `libcurl versions before 7.80 are refused`() {
            #expect(CurlLibrary.refusal(ofVersion: 0x07_50_00, "7.80.0") == nil)
            let refusal = CurlLibrary.refusal(ofVersion: 0x07_4F_01, "7.79.1")
            #expect(refusal?.code == .sessionUnavailable && refusal?.message.contains("7.80") == true)
        }
    }
#endif
