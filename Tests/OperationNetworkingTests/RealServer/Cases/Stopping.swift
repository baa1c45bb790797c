// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    extension RealServerCase {
        static var stopping: [RealServerCase] {
            [
                RealServerCase("canceling a running download does not affect other downloads") { bench async throws in
                    let other = bench.start(try bench.request("GET", "/large"))
                    for _ in 0..<10 {
                        let run = bench.start(try bench.request("GET", "/slow")) { event, task in
                            if case .bytes = event { task.cancel() }
                        }
                        #expect(await run.end().error?.code == .cancelled)
                    }
                    let record = await other.end()
                    #expect(record.bodyCount == NginxServer.largeCount && record.isPattern)
                },
                RealServerCase("a suspended download resumes where it stopped") { bench async throws in
                    let run = bench.start(try bench.request("GET", "/large"))
                    for part in 1..<8 {
                        _ = await run.receiver.record { $0.bodyCount >= part << 19 }
                        run.task.suspend()
                        let count = run.receiver.record.bodyCount
                        // Other requests on the connection continue.
                        #expect(try await bench.get("/small").bodyCount == 100)
                        #expect(run.receiver.record.bodyCount - count <= 1 << 20)
                        run.task.resume()
                    }
                    let record = await run.end()
                    #expect(record.isSuccess, "\(String(describing: record.error))")
                    #expect(record.bodyCount == NginxServer.largeCount && record.isPattern)
                },
                RealServerCase("held streams do not stop other streams on the connection") { bench async throws in
                    let held = try (0..<4).map { _ in
                        bench.start(try bench.request("GET", "/large")) { event, task in
                            if case .head = event { task.hold() }
                        }
                    }
                    for run in held { _ = await run.receiver.record { $0.head != nil } }
                    for _ in 0..<10 { #expect(try await bench.get("/small").bodyCount == 100) }
                    for run in held { #expect(run.receiver.record.bodyCount == 0) }
                    for run in held { run.task.proceed() }
                    for run in held {
                        let record = await run.end()
                        #expect(record.bodyCount == NginxServer.largeCount && record.isPattern)
                    }
                },
                RealServerCase("a request to a server that never responds fails with timedOut") { bench async throws in
                    let upstream = try LoopbackServer()
                    upstream.route("/never") { _ in .silence }
                    let record = await bench.run(
                        try bench.request("GET", "/up/\(upstream.port)/never") {
                            $0.timeouts.firstByte = .milliseconds(50)
                        })
                    #expect(record.error?.code == .timedOut && record.error?.phase == .awaitingResponse)
                    await upstream.counts { $0.openConnections == 0 }
                    await upstream.stopped()
                },
                RealServerCase("closing a session ends its tasks") { bench async throws in
                    let server = bench.server
                    let other = RealBench(server, .curl, bench.wire)
                    let runs = try (0..<20).map { _ in other.start(try other.request("GET", "/slow")) }
                    _ = await runs[0].receiver.record { $0.bodyCount > 0 }
                    other.closeSession()
                    for run in runs { #expect(await run.end().error?.code == .sessionClosed) }
                },
            ]
        }
    }
#endif
