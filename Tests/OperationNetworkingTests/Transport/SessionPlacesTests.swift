// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    /// Tests requests to several hosts that share one destination and its slots.
    @Suite(.timeLimit(.minutes(3)))
    struct SessionPlacesTests {
        /// A server, and a session that sends it the requests for other hosts over one connection at a time.
        private struct Side {
            let server: LoopbackServer
            let clock = SessionClock(stands: true)
            let session: CurlSession
            let gate = Gate()
            let first = RecordingReceiver()
            let second = RecordingReceiver()

            init(
                _ options: LoopbackServer.Options = LoopbackServer.Options(),
                _ change: (inout CurlSession.Configuration, LoopbackServer) -> Void
            ) throws {
                let server = try LoopbackServer(options)
                self.server = server
                session = CurlSession.direct(by: clock) {
                    $0.maximumConnectionsPerHost = 1
                    change(&$0, server)
                }
                let gate = gate
                for path in ["/", "http://a.test/", "http://b.test/"] {
                    server.route(path) { request in .text(request["Host"] ?? "").after(gate) }
                }
            }

            /// Starts a request for one host and, while it is running, a request for another host.
            func start(_ limit: Duration) async throws {
                for (name, recorder) in [("a.test", first), ("b.test", second)] {
                    let url = try #require(URL(string: "http://\(name)/"))
                    let options = with(TransferOptions(timeouts: .none)) { $0.timeouts.connect = limit }
                    session.makeTask(with: try NetworkRequest(url: url, options: options), receiver: recorder).resume()
                    _ = await server.heads(atLeast: 1)
                }
            }

            /// Advances the clock and waits until the session has noticed.
            func pass(_ duration: Duration) async throws {
                clock.leap(duration)
                // This request leaves the same line on the session's thread, which first checks the clock.
                let last = RecordingReceiver()
                let task = try session.begin(try #require(URL(string: "http://b.test/")), last)
                task.cancel()
                #expect(await last.end().code == .cancelled)
            }
        }

        @Test func `requests to one destination wait for its slot, and no limit counts down`() async throws {
            let path = FileManager.default.temporaryDirectory.appendingPathComponent(
                "places-\(UInt32.random(in: 0...(.max)))"
            ).path
            let local = with(LoopbackServer.Options()) { $0.addresses = [.unixSocket(path: path)] }
            let sides = [
                try Side { $0.proxy = .url("http://127.0.0.1:\($1.port)", exceptions: ["127.0.0.1"]) },
                try Side {
                    $0.addressOverrides = ["a.test:80": "127.0.0.1:\($1.port)", "b.test:80": "127.0.0.1:\($1.port)"]
                },
                try Side(local) { configuration, _ in configuration.unixSocketPath = path },
            ]
            let limit = Duration.seconds(60)
            for side in sides {
                try await side.start(limit)
                try await side.pass(.zero)
                try await side.pass(limit + .seconds(1))
                // The session has now checked the clock again.
                try await side.pass(.zero)
            }
            for side in sides {
                #expect(side.second.record.ends == 0 && side.server.counts.heads == 1)
                side.gate.open()
            }
            for side in sides {
                let records = [await side.first.end(), await side.second.end()]
                #expect(records.map(\.text) == ["a.test", "b.test"], "\(records)")
                let waited = try #require(records[1].metrics?.slotGranted)
                #expect(waited >= limit)
                side.session.close()
                await side.server.stopped()
            }
        }
    }
#endif
