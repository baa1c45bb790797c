// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if os(Linux)
    import Foundation
    import OperationCore
    import OperationNetworking
    import OperationTestKit
    import Testing

    /// Requests to several hosts that share what they go to, and with it the slots.
    @Suite(.timeLimit(.minutes(3)))
    struct SessionPlacesTests {
        /// A server, and a session that asks it for what belongs to other hosts, over one connection at a time.
        private struct Side {
            let server: LoopbackServer
            let session: CurlSession
            let gate = Gate()
            let first = TransferRecorder()
            let second = TransferRecorder()

            init(
                _ options: LoopbackServer.Options = LoopbackServer.Options(),
                _ change: (inout CurlSession.Configuration, LoopbackServer) -> Void
            ) throws {
                let server = try LoopbackServer(options)
                self.server = server
                session = CurlSession.direct {
                    $0.maximumConnectionsPerHost = 1
                    change(&$0, server)
                }
                let gate = gate
                for path in ["/", "http://a.test/", "http://b.test/"] {
                    server.route(path) { request in .text(request["Host"] ?? "").after(gate) }
                }
            }

            /// Starts a request for one host, and while that is on its way, one for another host.
            func start(_ limit: Duration) async throws {
                for (name, recorder) in [("a.test", first), ("b.test", second)] {
                    let url = try #require(URL(string: "http://\(name)/"))
                    let options = TransferOptions(timeouts: TransferTimeouts(connect: limit))
                    session.makeTask(with: try NetworkRequest(url: url, options: options), receiver: recorder).resume()
                    _ = await server.heads(atLeast: 1)
                }
            }
        }

        @Test func `who waits for a connection to the same place waits in line, where no time limit runs`() async throws
        {
            let path = FileManager.default.temporaryDirectory.appendingPathComponent(
                "places-\(UInt32.random(in: 0...(.max)))"
            ).path
            var local = LoopbackServer.Options()
            local.addresses = [.unixSocket(path: path)]
            let sides = [
                try Side { $0.proxy = .url("http://127.0.0.1:\($1.port)", exceptions: ["127.0.0.1"]) },
                try Side {
                    $0.addressOverrides = ["a.test:80": "127.0.0.1:\($1.port)", "b.test:80": "127.0.0.1:\($1.port)"]
                },
                try Side(local) { configuration, _ in configuration.unixSocketPath = path },
            ]
            let limit = Duration.milliseconds(600)
            for side in sides { try await side.start(limit) }
            // A request to elsewhere exceeds a longer limit meanwhile, on the same thread.
            let silent = try LoopbackServer()
            silent.route("/") { _ in .silence }
            let longer = TransferOptions(timeouts: TransferTimeouts(firstByte: limit + .milliseconds(100)))
            for side in sides.dropLast() {
                #expect(try await side.session.run(silent.url(), options: longer).code == .timedOut)
            }
            for side in sides {
                #expect(side.second.now.ends.isEmpty && side.server.counts.heads == 1)
                side.gate.open()
            }
            for side in sides {
                let records = [await side.first.ended(), await side.second.ended()]
                #expect(records.map(\.text) == ["a.test", "b.test"], "\(records)")
                let waited = try #require(records[1].metrics.first?.slotGranted)
                #expect(waited >= limit)
                side.session.close()
                await side.server.stopped()
            }
            await silent.stopped()
        }
    }
#endif
