// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import OperationNetworking
    import OperationTestKit
    import Testing

    extension RealServerCase {
        private static func connections(
            _ bench: RealBench, requests count: Int, target: String = "/connection"
        ) async throws -> Set<String> {
            let runs = try (0..<count).map { _ in bench.start(try bench.request("GET", target)) }
            var numbers: Set<String> = []
            for run in runs {
                let record = await run.end()
                #expect(record.status == 200, "\(String(describing: record.error))")
                numbers.insert(record.head?.headers["X-Connection"] ?? "")
            }
            return numbers
        }

        static var connecting: [RealServerCase] {
            [
                RealServerCase("sequential requests reuse one connection") { bench async throws in
                    var numbers: Set<String> = []
                    for index in 0..<20 {
                        let record = try await bench.get("/connection")
                        numbers.insert(record.text)
                        #expect(record.metrics?.isConnectionReused == (index > 0))
                    }
                    #expect(numbers.count == 1)
                },
                RealServerCase("a connection is reused after every kind of response") { bench async throws in
                    var numbers: Set<String?> = []
                    for target in ["/small", "/gzip", "/trailers", "/nothing", "/permanent", "/secret", "/large"] {
                        numbers.insert(try await bench.get(target).head?.headers["X-Connection"])
                        let head = await bench.run(try bench.request("HEAD", target))
                        numbers.insert(head.head?.headers["X-Connection"])
                    }
                    #expect(numbers.count == 1)
                },
                RealServerCase("many concurrent requests all complete over few connections") { bench async throws in
                    let numbers = try await connections(bench, requests: 300)
                    #expect(numbers.count <= 6)
                },
                RealServerCase(
                    "one connection serves all requests if the limit is one",
                    configure: { $0.maximumConnectionsPerHost = 1 }
                ) { bench async throws in
                    let numbers = try await connections(bench, requests: 300)
                    #expect(numbers.count == 1)
                },
                RealServerCase(
                    "concurrent large bodies arrive with every byte exactly once",
                    configure: { $0.maximumConnectionsPerHost = 2 }
                ) { bench async throws in
                    let runs = try (0..<8).map { _ in bench.start(try bench.request("GET", "/large")) }
                    for run in runs {
                        let record = await run.end()
                        #expect(record.isSuccess, "\(String(describing: record.error))")
                        #expect(record.bodyCount == NginxServer.largeCount && record.isPattern)
                    }
                },
                RealServerCase(
                    "delayed responses do not delay other requests on the same connection",
                    configure: { $0.maximumConnectionsPerHost = 6 }
                ) { bench async throws in
                    let upstream = try LoopbackServer()
                    let gate = Gate()
                    upstream.route("/late") { _ in .text("late").after(gate) }
                    #expect(try await bench.get("/small").isSuccess)
                    let waiting = try (0..<5).map { _ in
                        bench.start(try bench.request("GET", "/up/\(upstream.port)/late"))
                    }
                    _ = await upstream.heads(atLeast: 5)
                    #expect(try await bench.get("/small").bodyCount == 100)
                    gate.open()
                    for run in waiting { #expect(await run.end().text == "late") }
                    await upstream.stopped()
                },
                RealServerCase("a new connection replaces a connection that the server closed") { bench async throws in
                    for _ in 0..<5 { #expect(try await bench.get("/closing").text == "closing") }
                },
            ]
        }
    }
#endif
