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
                RealServerCase("a task canceled before it started ends without a response") { bench async throws in
                    let receiver = RecordingReceiver()
                    let task = bench.session.makeTask(with: try bench.request("GET", "/small"), receiver: receiver)
                    task.cancel()
                    let record = await receiver.end()
                    #expect(record.error?.code == .cancelled && record.head == nil)
                },
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
                RealServerCase("canceling a running upload ends it") { bench async throws in
                    let body = RequestBody.data(Data(count: 20 << 20))
                    for _ in 0..<5 {
                        let run = bench.start(try bench.request("PUT", "/files/\(UUID().uuidString)", body: body)) {
                            if case .sent(let count, _) = $0, count > 100_000 { $1.cancel() }
                        }
                        #expect(await run.end().error?.code == .cancelled)
                    }
                },
                RealServerCase("each task canceled at a random moment ends once") { bench async throws in
                    var generator = SeededGenerator(seed: Rounds.firstSeed)
                    for _ in 0..<Rounds.count(ci: 20, soak: 1_000) {
                        let runs = try (0..<10).map { number in
                            bench.start(try bench.request("GET", number < 5 ? "/small" : "/large"))
                        }
                        for run in runs.shuffled(using: &generator) {
                            if generator.chance(1, in: 2) { _ = await run.receiver.record { $0.head != nil } }
                            if !generator.chance(1, in: 4) { run.task.cancel() }
                        }
                        for run in runs {
                            let record = await run.end()
                            #expect(record.error == nil || record.error?.code == .cancelled)
                        }
                    }
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
                RealServerCase("a receiver that holds the task after each part receives every byte exactly once") {
                    bench async throws in
                    let run = bench.start(try bench.request("GET", "/large")) { event, task in
                        guard case .bytes = event else { return }
                        task.hold()
                        DispatchQueue.global().async { task.proceed() }
                    }
                    let record = await run.end()
                    #expect(record.isSuccess, "\(String(describing: record.error))")
                    #expect(record.bodyCount == NginxServer.largeCount && record.isPattern)
                },
                RealServerCase("suspending the download of a compressed body delivers every byte exactly once") {
                    bench async throws in
                    let run = bench.start(try bench.request("GET", "/gzip"))
                    for part in 1..<4 {
                        _ = await run.receiver.record { $0.bodyCount >= part * 30_000 }
                        run.task.suspend()
                        run.task.resume()
                    }
                    #expect(await run.end().text == String(repeating: "All work and no play. ", count: 5_000))
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
