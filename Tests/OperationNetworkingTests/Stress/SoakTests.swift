// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.timeLimit(.minutes(Rounds.minutes)))
    struct SoakTests {
        private static let lanes = 48

        @Test(arguments: SessionKind.onLibcurl)
        func `many requests, successful and failing, each end once without resource growth`(_ kind: SessionKind)
            async throws
        {
            let rounds = Rounds.count(ci: 2_000, soak: 1_000_000)
            let before = try await ProcessShape.warm(kind)
            let options = with(LoopbackServer.Options()) { $0.keptRequests = 16 }
            let server = try LoopbackServer(options)
            Mischief.serve(on: server)
            let (session, transport) = kind.makeCurlPair { $0.maximumConnectionsPerHost = 32 }
            let ends = Tally()
            let start = ContinuousClock.now

            await run(0..<rounds / 10, session, server, ends)
            let early = ProcessShape()
            await run(rounds / 10..<rounds, session, server, ends)
            let seconds = start.duration(to: .now) / .seconds(1)
            let late = try await ProcessShape.settled(since: early, connections: 32)

            print("soak: \(rounds) requests, \(kind), \(Int(Double(rounds) / seconds)) a second")
            print("soak: after a tenth \(early); at the end \(late)")
            #expect(late.growth(since: early, connections: 32) == [], "\(early) became \(late)")
            #expect(ends.count == rounds)
            transport.close()
            await server.stopped()
            #expect(try await ProcessShape.settled(since: before).newDescriptors(since: before) == [])
        }

        private func run(
            _ numbers: Range<Int>, _ session: any NetworkSession, _ server: LoopbackServer, _ ends: Tally
        ) async {
            let taken = Tally()
            await withTaskGroup { group in
                for _ in 0..<Self.lanes {
                    group.addTask {
                        while true {
                            let number = numbers.lowerBound + taken.add()
                            guard number < numbers.upperBound else { return }
                            await one(Rounds.firstSeed &+ UInt64(number), session, server, ends)
                        }
                    }
                }
            }
        }

        private func one(
            _ seed: UInt64, _ session: any NetworkSession, _ server: LoopbackServer, _ ends: Tally
        ) async {
            let kind = Mischief.of(seed)
            let receiver = RecordingReceiver { event, task in
                if case .end = event { ends.add() }
                kind.react(event, task)
            }
            do {
                let request = try NetworkRequest(
                    kind.method, url: server.url(kind.path), body: kind.body,
                    options: TransferOptions(timeouts: kind.timeouts))
                session.makeTask(with: request, receiver: receiver).resume()
            } catch {
                Issue.record(error)
            }
            let record = await receiver.end()
            if record.ends != 1 || !record.faults.isEmpty || !kind.isRight(record) {
                let error = String(describing: record.error)
                Issue.record("\(seed), \(kind.name): \(record.ends) ends, \(record.faults), \(error), \(record.text)")
            }
        }

        @Test func `thousands of concurrent connections all complete on few threads`() async throws {
            var limit = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            // Both ends of each connection are in this process.
            let room = Int(min(limit.rlim_cur, 100_000)) / 2 - 200
            let count = min(Rounds.count(ci: 200, soak: 9_000), room)
            let before = try await ProcessShape.warm(.curl)
            let (during, closed) = try await connect(count)
            #expect(during.threads <= before.threads + 4)
            let after = try await ProcessShape.settled(since: before)
            let isMemoryGivenBack = ProcessFigures.giveBackFreeMemory()
            let last = ProcessShape()
            print("soak: \(count) connections at a time: \(before), then \(during), closed \(closed)")
            print("soak: after the release \(after); without the memory that malloc keeps \(last)")
            #expect(last.newDescriptors(since: before) == [])
            // The session, the server, the receivers and libcurl have released everything.
            if isMemoryGivenBack { #expect(last.growth(since: before) == [], "\(last)") }
        }

        /// Runs `count` requests that all have a connection at the same time.
        ///
        /// Returns the shape then and after the end.
        private func connect(_ count: Int) async throws -> (during: ProcessShape, closed: ProcessShape) {
            let server = try LoopbackServer()
            let gate = Gate()
            server.route("/") { _ in .text("hello").after(gate) }
            let (session, transport) = SessionKind.curl.makeCurlPair {
                $0.maximumConnectionsPerHost = count
                $0.maximumConnections = count
            }
            let options = TransferOptions(timeouts: .none)
            let runs = try (0..<count).map { _ in
                let receiver = RecordingReceiver()
                let task = try session.begin(server.url(), options: options, receiver)
                return Bench.Running(task: task, receiver: receiver)
            }
            await server.counts { $0.heads >= count }
            let during = try await TestThread.run { ProcessShape() }
            gate.open()
            for run in runs { #expect(await run.end().text == "hello") }
            try await TestThread.run { transport.closeAndWait() }
            await server.stopped()
            return (during, try await TestThread.run { ProcessShape() })
        }
    }
#endif
