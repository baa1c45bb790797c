// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.timeLimit(.minutes(Rounds.minutes)))
    struct CancelStormTests {
        /// A step in the life of a task at which it is canceled.
        private enum Moment: CaseIterable, Sendable {
            case beforeStart, rightAfterStart, inLine, inProducer
            case atSent, atInformational, atHead, atBytes, atTrailers, atMetrics, atEnd
            case whileSuspended, whileHeld, elsewhere

            func isReached(by event: RecordingReceiver.Event) -> Bool {
                switch (self, event) {
                case (.atSent, .sent), (.atInformational, .informational), (.atHead, .head), (.atBytes, .bytes),
                    (.atTrailers, .trailers), (.atMetrics, .metrics), (.atEnd, .end):
                    true
                default: false
                }
            }
        }

        /// A task and the number of its events after the receiver canceled it.
        private final class Run: Sendable {
            let task = Locked<(any NetworkTask)?>(nil)
            let afterwards = Locked((isCancelled: false, events: 0))

            func cancel() {
                task.withLock { $0 }?.cancel()
                afterwards.withLock { $0.isCancelled = true }
            }

            func note() { afterwards.withLock { if $0.isCancelled { $0.events += 1 } } }
        }

        private func makeServer() throws -> LoopbackServer {
            let options = with(LoopbackServer.Options()) { $0.keptRequests = 16 }
            let server = try LoopbackServer(options)
            server.route("/") { _ in
                LoopbackAnswer(
                    .head(103), .head(200, ["Transfer-Encoding": "chunked"]), .chunk("a"), .chunk("b"),
                    .lastChunk(trailers: ["X-A": "b"]))
            }
            return server
        }

        @Test(arguments: SessionKind.onLibcurl)
        func `canceling a task at every step of its life ends it exactly once`(_ kind: SessionKind) async throws {
            let rounds = Rounds.count(ci: 1_000, soak: 100_000)
            let before = try await ProcessShape.warm(kind)
            let server = try makeServer()
            let (session, transport) = kind.makeCurlPair { $0.maximumConnectionsPerHost = 4 }
            let taken = Tally(), ends = Tally()
            await run(rounds / 10, session, server, taken, ends)
            let early = ProcessShape()
            await run(rounds, session, server, taken, ends)
            let late = try await ProcessShape.settled(since: early, connections: 4)
            print("soak: \(rounds) cancels, \(kind): \(early) became \(late)")
            #expect(late.growth(since: early, connections: 4) == [], "\(early) became \(late)")
            #expect(ends.count == rounds)
            transport.close()
            await server.stopped()
            #expect(try await ProcessShape.settled(since: before).newDescriptors(since: before) == [])
        }

        private func run(
            _ rounds: Int, _ session: any NetworkSession, _ server: LoopbackServer, _ taken: Tally, _ ends: Tally
        ) async {
            let start = taken.count
            let share = Tally()
            await withTaskGroup { group in
                for _ in 0..<12 {
                    group.addTask {
                        while start + share.add() < rounds {
                            let number = taken.add()
                            let moment = Moment.allCases[number % Moment.allCases.count]
                            await one(moment, Rounds.firstSeed &+ UInt64(number), session, server, ends)
                        }
                    }
                }
            }
        }

        private func one(
            _ moment: Moment, _ seed: UInt64, _ session: any NetworkSession, _ server: LoopbackServer, _ ends: Tally
        ) async {
            let run = Run()
            let receiver = RecordingReceiver { event, task in
                run.note()
                if case .end = event { ends.add() }
                if moment.isReached(by: event) { run.cancel() }
                if moment == .whileSuspended, case .head = event { task.suspend() }
                if moment == .whileHeld, case .head = event { task.hold() }
            }
            let body = RequestBody.stream(canBeSentAgain: false) {
                // Three pieces.
                ClosureProducer { buffer, _, piece in
                    if piece == 2, moment == .inProducer { run.cancel() }
                    guard piece <= 3 else { return .end }
                    buffer.copyBytes(from: [1, 2, 3])
                    return .bytes(3)
                }
            }
            do {
                let request = try NetworkRequest(
                    "PUT", url: server.url(), body: body, options: TransferOptions(timeouts: .none))
                let task = session.makeTask(with: request, receiver: receiver)
                run.task.withLock { $0 = task }
                await cancel(run, task, receiver, moment, seed)
            } catch {
                Issue.record(error)
            }
            check(await receiver.end(), run.afterwards.withLock { $0.events }, moment, seed)
            run.task.withLock { $0 = nil }
        }

        /// Starts the task and cancels it, unless the receiver or the producer cancels it.
        private func cancel(
            _ run: Run, _ task: any NetworkTask, _ receiver: RecordingReceiver, _ moment: Moment, _ seed: UInt64
        ) async {
            if moment == .beforeStart { task.cancel() }
            task.resume()
            switch moment {
            case .rightAfterStart: task.cancel()
            case .inLine:
                // With four slots for twelve lanes, some lanes wait.
                await Task.yield()
                task.cancel()
            case .whileSuspended, .whileHeld:
                _ = await receiver.record { $0.head != nil }
                task.cancel()
            case .elsewhere:
                var generator = SeededGenerator(seed: seed)
                let turns = Int.random(in: 0..<300, using: &generator)
                _ = try? await TestThread.run { for _ in 0..<turns { sched_yield() } }
                task.cancel()
            default: break
            }
        }

        private func check(_ record: RecordingReceiver.Record, _ events: Int, _ moment: Moment, _ seed: UInt64) {
            let isCancelled = record.error?.code == .cancelled
            let isWhole = record.error == nil && record.text == "ab"
            let isRight =
                switch moment {
                case .atEnd: isWhole && events == 0
                case .atSent, .atInformational, .atHead, .atBytes, .atTrailers, .atMetrics:
                    isCancelled && events == 1
                case .inProducer, .beforeStart, .whileSuspended, .whileHeld: isCancelled
                case .rightAfterStart, .inLine, .elsewhere: isCancelled || isWhole
                }
            guard !isRight || record.ends != 1 || !record.faults.isEmpty else { return }
            let error = String(describing: record.error)
            Issue.record("\(seed), \(moment): \(record.ends) ends, \(events) events, \(record.faults), \(error)")
        }
    }
#endif
