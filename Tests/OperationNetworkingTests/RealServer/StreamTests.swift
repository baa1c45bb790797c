// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    /// Tests HTTP/2 with a server that accepts fewer requests per connection than the session would send.
    @Suite(.enabled(if: ServerPrograms.areThere, "Run Scripts/prepare-servers."), .timeLimit(.minutes(2)))
    struct StreamTests {
        private func session(
            _ server: NginxServer, by clock: SessionClock? = nil
        ) -> CurlSession {
            CurlSession.direct(by: clock) {
                $0.tls.trust = .file(server.certificates.authority)
                $0.maximumConnectionsPerHost = 1
            }
        }

        private func url(_ port: UInt16, _ target: String) throws -> URL {
            try #require(URL(string: "https://localhost:\(port)\(target)"))
        }

        @Test func `a request that waits for a stream does not exceed its connect limit`() async throws {
            let server = try await NginxServer.shared.value
            let clock = SessionClock()
            let session = session(server, by: clock)
            let port = server.ports.narrow
            // After this request, the session knows that the connection accepts several requests.
            let first = try await session.run(url(port, "/small"))
            #expect(first.bodyCount == 100 && first.metrics?.version == .http2)
            let waiting = RecordingReceiver()
            let isServed = Gate()
            let slow = RecordingReceiver { event, _ in
                if case .head = event { isServed.open() }
            }
            let endless = TransferOptions(timeouts: .none)
            let slowTask = try session.begin(url(port, "/slow"), options: endless, slow)
            await isServed.passage()
            let limit = Duration.seconds(60)
            let options = TransferOptions(timeouts: TransferTimeouts(connect: limit, total: limit * 20))
            session.makeTask(with: try NetworkRequest(url: url(port, "/small"), options: options), receiver: waiting)
                .resume()
            try await clock.leap(.zero, noticedBy: session)
            try await clock.leap(limit * 2, noticedBy: session)
            #expect(waiting.record.ends == 0)
            slowTask.cancel()
            let record = await waiting.end()
            #expect(record.error == nil && record.bodyCount == 100, "\(String(describing: record.error))")
            session.close()
        }

        @Test(arguments: CurlSession.reportsRefusals ? ["GET", "POST"] : ["GET"])
        func `requests beyond the last that a connection accepts are sent again`(
            _ method: String
        ) async throws {
            let server = try await NginxServer.shared.value
            let session = session(server)
            #expect(try await session.run(url(server.ports.brief, "/small")).bodyCount == 100)
            let recorders = (0..<40).map { _ in RecordingReceiver() }
            for recorder in recorders {
                let body: RequestBody = method == "GET" ? .none : .data(Data("x".utf8))
                let request = try NetworkRequest(method, url: url(server.ports.brief, "/read"), body: body)
                session.makeTask(with: request, receiver: recorder).resume()
            }
            for recorder in recorders {
                let record = await recorder.end()
                #expect(record.error == nil && record.status == 200, "\(String(describing: record.error))")
            }
            session.close()
        }
    }
#endif
