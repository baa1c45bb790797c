// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    /// Tests a server that closes each HTTP/2 connection after 50 requests, while many more are on their way.
    @Suite(
        .enabled(if: ServerPrograms.areThere, "Run Scripts/prepare-servers."),
        .enabled(if: CurlSession.reportsRefusals, "This libcurl does not report refused requests."),
        .timeLimit(.minutes(2)), .serialized)
    struct GracefulShutdownTests {
        /// The requests of one test.
        ///
        /// The server's log identifies each request by its query.
        private struct Batch {
            let server: NginxServer
            let session: CurlSession
            let mark = UUID().uuidString

            init() async throws {
                let server = try await NginxServer.shared.value
                self.server = server
                session = CurlSession.direct { $0.tls.trust = .file(server.certificates.authority) }
                // After this request, the session knows that a connection accepts many requests.
                #expect(try await session.run(url("/small")).bodyCount == 100)
            }

            func url(_ target: String) throws -> URL {
                try #require(URL(string: "https://localhost:\(server.ports.counting)\(target)"))
            }

            func target(_ number: Int) -> String { "/read?\(mark)-\(number)" }

            /// Sends `count` requests concurrently and waits until all have ended.
            func send(
                _ count: Int, _ method: String, body: () -> RequestBody
            ) async throws -> [RecordingReceiver.Record] {
                let recorders = (0..<count).map { _ in RecordingReceiver() }
                for (number, recorder) in recorders.enumerated() {
                    let request = try NetworkRequest(method, url: url(target(number)), body: body())
                    session.makeTask(with: request, receiver: recorder).resume()
                }
                var records: [RecordingReceiver.Record] = []
                for recorder in recorders { records.append(await recorder.end()) }
                return records
            }

            /// The number of responses of the server to each request, by the request target.
            func answered(count: Int) async throws -> [String: Int] {
                let (server, mark) = (server, mark)
                return try await TestThread.run { try server.answered(mark, count: count) }
            }
        }

        @Test(arguments: ["POST", "PATCH"], [0, 5_000])
        func `requests with side effects are processed exactly once`(_ method: String, _ size: Int) async throws {
            let batch = try await Batch()
            let records = try await batch.send(500, method) { size == 0 ? .none : .data(Data(count: size)) }
            for record in records {
                #expect(record.error == nil && record.status == 200, "\(String(describing: record.error))")
            }
            let answered = try await batch.answered(count: records.count)
            #expect(answered.count == records.count && answered.values.allSatisfy { $0 == 1 })
            batch.session.close()
        }

        @Test func `POST requests are processed exactly once beside a long-running download`() async throws {
            let batch = try await Batch()
            let isServed = Gate()
            let slow = RecordingReceiver { event, _ in
                if case .head = event { isServed.open() }
            }
            let slowTask = batch.session.makeTask(
                with: try NetworkRequest(url: batch.url("/slow"), options: TransferOptions(timeouts: .none)),
                receiver: slow)
            slowTask.resume()
            await isServed.passage()
            let beside = (0..<100).map { _ in RecordingReceiver() }
            for recorder in beside {
                batch.session.makeTask(with: try NetworkRequest(url: batch.url("/small")), receiver: recorder).resume()
            }
            let records = try await batch.send(200, "POST") { .data(Data(count: 100)) }
            for record in records {
                #expect(record.error == nil && record.status == 200, "\(String(describing: record.error))")
            }
            for recorder in beside { #expect(await recorder.end().error == nil) }
            slowTask.cancel()
            #expect(await slow.end().code == .cancelled)
            let answered = try await batch.answered(count: records.count)
            #expect(answered.count == records.count && answered.values.allSatisfy { $0 == 1 })
            batch.session.close()
        }

        @Test func `a refused request with a one-time body ends as unsent`() async throws {
            let batch = try await Batch()
            let records = try await batch.send(200, "POST") {
                .stream(InputStream(data: Data(count: 5_000)), length: 5_000)
            }
            let good = records.filter { $0.error == nil && $0.status == 200 }.count
            let answered = try await batch.answered(count: good)
            for (number, record) in records.enumerated() {
                if let error = record.error {
                    #expect(error.code == .bodyNotRepeatable && error.isUnsent && record.heads.isEmpty, "\(error)")
                }
                #expect(answered[batch.target(number)] == (record.error == nil ? 1 : nil))
            }
            batch.session.close()
        }

        /// libcurl 7.88 repeatedly asks whether it can send the rest of the body.
        @Test(arguments: ["POST", "PUT"])
        func `a complete response ends a request whose body the server does not read`(_ method: String) async throws {
            let batch = try await Batch()
            let record = try await batch.session.run(batch.url("/spoken"), method, body: .data(Data(count: 300_000)))
            #expect(record.error == nil && record.status == 200, "\(String(describing: record.error))")
            #expect(record.text.hasPrefix("HTTP/2.0"))
            #expect(try await batch.session.run(batch.url("/small")).bodyCount == 100)
            batch.session.close()
        }
    }
#endif
