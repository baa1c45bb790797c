// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationCore
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.timeLimit(.minutes(3)))
    struct SessionControlTests {
        private let server: LoopbackServer
        private let session = CurlSession.direct()

        init() throws {
            server = try LoopbackServer()
            server.route("/big") { _ in .repeating(TestPattern.block, count: 4 << 20) }
            server.route("/silent") { _ in .silence }
        }

        private func task(_ path: String, _ recorder: TransferRecorder) throws -> any NetworkTask {
            session.makeTask(with: try NetworkRequest(url: server.url(path)), receiver: recorder)
        }

        private func expectCancelled(_ record: TransferRecorder.Record) {
            #expect(record.code == .cancelled && record.ends.count == 1 && record.disorder.isEmpty)
        }

        private func expectBig(_ record: TransferRecorder.Record) {
            #expect(record.error == nil && record.ends.count == 1 && record.disorder.isEmpty)
            #expect(record.body.count == 4 << 20 && TestPattern.matches(record.body))
        }

        @Test func `a task canceled before it was resumed is never sent`() async throws {
            let recorder = TransferRecorder()
            let task = try task("/big", recorder)
            task.cancel()
            task.resume()
            expectCancelled(await recorder.ended())
            #expect(server.counts.heads == 0)
        }

        @Test func `a running task ends immediately when it is canceled`() async throws {
            let recorder = TransferRecorder()
            let task = try task("/silent", recorder)
            task.resume()
            _ = await server.heads(atLeast: 1)
            task.cancel()
            task.cancel()
            let record = await recorder.ended()
            expectCancelled(record)
            #expect(record.error?.phase == .awaitingResponse && record.error?.isUnsent == false)
            await server.counts { $0.openConnections == 0 }
        }

        @Test func `a receiver may cancel its task in each of its methods`() async throws {
            let atHead = TransferRecorder(onHead: { task, _ in task.cancel() })
            try task("/big", atHead).resume()
            let record = await atHead.ended()
            expectCancelled(record)
            #expect(record.bodyCount == 0)
            let atBytes = TransferRecorder(onBytes: { task, _ in task.cancel() })
            try task("/big", atBytes).resume()
            let second = await atBytes.ended()
            expectCancelled(second)
            #expect(second.bodyCount > 0 && second.bodyCount <= 64 << 10)
            let atEnd = TransferRecorder(onEnd: { task, _ in
                task.cancel()
                task.resume()
                task.suspend()
            })
            try task("/big", atEnd).resume()
            expectBig(await atEnd.ended())
        }

        @Test func `a receiver that holds receives nothing until it proceeds, then every byte once`() async throws {
            let held = Gate()
            let recorder = TransferRecorder(onBytes: { task, record in
                guard !held.isOpen else { return }
                task.hold()
                held.open()
                #expect(record.bodyCount > 0)
            })
            let task = try task("/big", recorder)
            task.resume()
            await held.passage()
            let count = recorder.now.bodyCount
            // Another exchange completes meanwhile.
            server.route("/other") { _ in .text("other") }
            #expect(try await session.run(server.url("/other")).text == "other")
            #expect(recorder.now.bodyCount == count && recorder.now.ends.isEmpty)
            task.proceed()
            expectBig(await recorder.ended())
        }

        @Test func `holding at each part and proceeding on another thread loses no bytes`() async throws {
            let recorder = TransferRecorder(onBytes: { task, _ in
                task.hold()
                DispatchQueue.global().async { task.proceed() }
            })
            try task("/big", recorder).resume()
            expectBig(await recorder.ended())
        }

        @Test func `a hold at the headers delays the body, and at the last byte the end`() async throws {
            server.route("/small") { _ in .text("small") }
            let atHead = TransferRecorder(onHead: { task, _ in task.hold() })
            let first = try task("/small", atHead)
            first.resume()
            await server.counts { $0.answers == 1 }
            #expect(try await session.run(server.url("/small")).text == "small")
            #expect(atHead.now.bodyCount == 0 && atHead.now.ends.isEmpty)
            first.proceed()
            #expect(await atHead.ended().text == "small")

            let atBytes = TransferRecorder(onBytes: { task, _ in task.hold() })
            let second = try task("/small", atBytes)
            second.resume()
            await server.counts { $0.answers == 3 }
            #expect(try await session.run(server.url("/small")).text == "small")
            #expect(atBytes.now.text == "small" && atBytes.now.ends.isEmpty && atBytes.now.metrics.isEmpty)
            second.proceed()
            let record = await atBytes.ended()
            #expect(record.error == nil && record.metrics.count == 1)
        }

        @Test func `canceling ends a task that is held or suspended`() async throws {
            let holding = TransferRecorder(onHead: { task, _ in task.hold() })
            let held = try task("/big", holding)
            held.resume()
            await server.counts { $0.sentBytes > 0 }
            held.cancel()
            expectCancelled(await holding.ended())
            let suspending = TransferRecorder(onBytes: { task, _ in task.suspend() })
            let suspended = try task("/big", suspending)
            suspended.resume()
            await server.counts { $0.heads == 2 && $0.sentBytes > 100 }
            suspended.cancel()
            expectCancelled(await suspending.ended())
        }

        @Test func `a suspended download stops on the wire and resumes where it stopped`() async throws {
            let suspended = Gate()
            let recorder = TransferRecorder(onBytes: { task, record in
                guard record.bodyCount > 100_000, !suspended.isOpen else { return }
                task.suspend()
                suspended.open()
            })
            server.route("/long") { _ in .repeating(TestPattern.block, count: 64 << 20) }
            let task = try task("/long", recorder)
            task.resume()
            await suspended.passage()
            server.route("/other") { _ in .text("other") }
            #expect(try await session.run(server.url("/other")).text == "other")
            let count = recorder.now.bodyCount
            // Beyond the received bytes, the server sent only as many bytes as fit into the system's buffers.
            #expect(server.counts.sentBytes < 48 << 20 && recorder.now.ends.isEmpty)
            #expect(recorder.now.bodyCount == count)
            task.resume()
            let record = await recorder.ended()
            #expect(record.error == nil && record.bodyCount == 64 << 20)
            #expect(TestPattern.matches(record.body))
            #expect(record.metrics[0].paused > .zero)
        }

        @Test func `a task suspended before it started is not sent until it is resumed`() async throws {
            let recorder = TransferRecorder()
            let task = try task("/big", recorder)
            task.suspend()
            task.resume()
            task.suspend()
            server.route("/other") { _ in .text("other") }
            #expect(try await session.run(server.url("/other")).text == "other")
            task.resume()
            expectBig(await recorder.ended())
            let requests = await server.requests(atLeast: 2)
            #expect(requests.filter { $0.path == "/big" }.count == 1)
        }

        @Test func `a suspended upload stops, and arrives completely after it resumes`() async throws {
            server.route("/up") { request in .text("\(request.bodyCount)") }
            let suspended = Gate()
            let box = Locked<(any NetworkTask)?>(nil)
            let body = RequestBody.stream(canBeSentAgain: false) {
                ClosureProducer { buffer, _, call in
                    if call == 5 {
                        box.withLock { $0 }?.suspend()
                        suspended.open()
                    }
                    guard call <= 100 else { return .end }
                    for index in 0..<10_000 { buffer[index] = UInt8(truncatingIfNeeded: call) }
                    return .bytes(10_000)
                }
            }
            let recorder = TransferRecorder()
            let request = try NetworkRequest("POST", url: server.url("/up"), body: body)
            let task = session.makeTask(with: request, receiver: recorder)
            box.withLock { $0 = task }
            task.resume()
            await suspended.passage()
            server.route("/other") { _ in .text("other") }
            #expect(try await session.run(server.url("/other")).text == "other")
            #expect(recorder.now.sent.last == 50_000)
            task.resume()
            let record = await recorder.ended()
            #expect(record.text == "1000000" && record.error == nil && record.disorder.isEmpty)
            box.withLock { $0 = nil }
        }

        @Test func `each task canceled at a random moment ends once`() async throws {
            server.route("/small") { _ in .chunks(["a", "b", "c"]) }
            var generator = SeededGenerator(seed: 42)
            for _ in 0..<40 {
                let recorders = (0..<50).map { _ in TransferRecorder() }
                let tasks = try recorders.map { try task("/small", $0) }
                for task in tasks { task.resume() }
                let delay = Int.random(in: 0..<2000, using: &generator)
                try await TestThread.run {
                    let end = DispatchTime.now().uptimeNanoseconds + UInt64(delay) * 1000
                    while DispatchTime.now().uptimeNanoseconds < end {}
                    for task in tasks { task.cancel() }
                }
                for recorder in recorders {
                    let record = await recorder.ended()
                    #expect(record.ends.count == 1 && record.disorder.isEmpty)
                    #expect(record.code == .cancelled || record.text == "abc")
                }
            }
        }
    }
#endif
