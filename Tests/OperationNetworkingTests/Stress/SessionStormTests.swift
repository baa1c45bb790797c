// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.timeLimit(.minutes(Rounds.minutes)))
    struct SessionStormTests {
        @Test(arguments: SessionKind.onLibcurl)
        func `restarting a server under load fails requests but leaks nothing`(_ kind: SessionKind) async throws {
            let path = FileManager.default.temporaryDirectory.appendingPathComponent(
                "restart-\(UInt32.random(in: 0...(.max)))"
            ).path
            let before = try await ProcessShape.warm(kind)
            let (session, transport) = kind.makeCurlPair { $0.unixSocketPath = path }
            let isOver = Gate()
            let ends = Tally(), successes = Tally()
            var options = LoopbackServer.Options()
            options.addresses = [.unixSocket(path: path)]
            // The server accepts no connections before its route exists.
            options.accepts = false
            let url = try #require(URL(string: "http://example.com/"))

            func makeServer() throws -> LoopbackServer {
                let server = try LoopbackServer(options)
                server.route("/") { _ in .repeating(TestPattern.block, count: 50_000) }
                server.setAccepting(true)
                return server
            }

            var server = try makeServer()
            let load = (0..<16).map { _ in
                Task {
                    var count = 0
                    while !isOver.isOpen {
                        let receiver = RecordingReceiver { event, _ in if case .end = event { ends.add() } }
                        try session.begin(url, options: TransferOptions(timeouts: .none), receiver)
                        let record = await receiver.end()
                        count += 1
                        let isWhole = record.isSuccess && record.bodyCount == 50_000
                        let isLost = [.cannotConnect, .connectionLost, .truncatedBody].contains(record.error?.code)
                        #expect((isWhole || isLost) && record.isPattern && record.faults.isEmpty, "\(record)")
                        if isWhole { successes.add() }
                    }
                    return count
                }
            }
            for _ in 0..<Rounds.count(ci: 5, soak: 300) {
                // Some requests succeed, then the server stops while others are running.
                await successes.gate(at: successes.count + 20).passage()
                await server.stopped()
                server = try makeServer()
            }
            isOver.open()
            var count = 0
            for task in load { count += try await task.value }
            #expect(ends.count == count)
            transport.close()
            await server.stopped()
            let after = try await ProcessShape.settled(since: before)
            print("soak: \(count) requests over restarts, \(successes.count) whole: \(before) became \(after)")
            #expect(after.newDescriptors(since: before) == [])
        }

        /// Starts tasks in all states: waiting, sending, receiving, suspended, held, ended and never started.
        private func startAll(
            _ session: any NetworkSession, _ server: LoopbackServer, _ events: Tally, _ ends: Tally
        ) throws -> [RecordingReceiver] {
            try (0..<30).map { number in
                let receiver = RecordingReceiver { event, task in
                    events.add()
                    if case .end = event { ends.add() }
                    guard case .head = event else { return }
                    if number % 7 == 0 { task.suspend() }
                    if number % 7 == 1 { task.hold() }
                }
                let path = ["/big", "/silent", "/small"][number % 3]
                let body: RequestBody = number % 5 == 0 ? .data(Data(count: 200_000)) : .none
                let request = try NetworkRequest(
                    number % 5 == 0 ? "PUT" : "GET", url: server.url(path), body: body,
                    options: TransferOptions(timeouts: .none))
                let task = session.makeTask(with: request, receiver: receiver)
                if number % 11 != 10 { task.resume() }
                return receiver
            }
        }

        @Test(arguments: SessionKind.onLibcurl)
        func `a session closed at any moment by several threads ends every task exactly once`(
            _ kind: SessionKind
        ) async throws {
            let before = try await ProcessShape.warm(kind)
            var options = LoopbackServer.Options()
            // Otherwise, the server keeps thousands of bodies, which would hide the leaks of the sessions.
            options.keptRequests = 16
            let server = try LoopbackServer(options)
            server.route("/big") { _ in .repeating(TestPattern.block, count: 1 << 30) }
            server.route("/silent") { _ in .silence }
            server.route("/small") { _ in .text("hello") }
            var generator = SeededGenerator(seed: Rounds.firstSeed)
            let rounds = Rounds.count(ci: 20, soak: 2_000)
            let team = ThreadTeam(count: 3)
            for _ in 0..<rounds {
                // The number of events at which the session is closed. Some bodies never end, so events never run out.
                let moment = Int.random(in: 0..<300, using: &generator)
                let (session, transport) = kind.makeCurlPair { $0.maximumConnectionsPerHost = 16 }
                let events = Tally(), ends = Tally()
                let isMoment = events.gate(at: moment)
                let receivers = try startAll(session, server, events, ends)
                try await TestThread.run {
                    team.run(
                        (0..<3).map { _ in
                            {
                                isMoment.wait()
                                transport.closeAndWait()
                            }
                        })
                }
                // An exchange session may report ends on other threads. The transport has no threads left.
                if kind == .curl { #expect(ends.count == 28) }
                for receiver in receivers.enumerated().filter({ $0.offset % 11 != 10 }).map(\.element) {
                    let record = await receiver.end()
                    #expect(record.ends == 1 && record.faults.isEmpty)
                    #expect(record.error == nil || record.error?.code == .sessionClosed, "\(record)")
                }
                #expect(ends.count == 28)
            }
            await server.stopped()
            let after = try await ProcessShape.settled(since: before)
            print("soak: \(rounds) sessions closed in flight, \(kind): \(before) became \(after)")
            #expect(after.newDescriptors(since: before) == [] && after.threads <= before.threads + 4, "\(after)")
        }

        @Test func `transfers paused for a long time resume where they stopped, and no limit expires`()
            async throws
        {
            let size = 2 << 20
            let server = try LoopbackServer()
            server.route("GET", "/") { _ in .repeating(TestPattern.block, count: size) }
            server.routeEarly("PUT", "/") { _ in LoopbackAnswer(.awaitBody).followed(by: .head(204)) }
            var configuration = CurlSession.Configuration()
            configuration.proxy = .none
            configuration.maximumConnectionsPerHost = 64
            let lead = Locked(Duration.zero)
            let session = CurlSession(configuration: configuration, clockOffset: { lead.withLock { $0 } })
            var timeouts = TransferTimeouts.none
            // Outside the soak, the clock leaps. A longer limit tolerates a busy machine.
            timeouts.idle = .seconds(Rounds.isSoak ? 5 : 60)
            let options = TransferOptions(timeouts: timeouts)
            server.route("/last") { _ in .text("last") }
            let paused = Tally(), reached = Tally()
            let runs = try (0..<40).map { number -> Bench.Running in
                let isUpload = number % 4 == 0
                let isFirst = Locked(true)
                let receiver = RecordingReceiver { event, task in
                    let count: Int64? =
                        switch event {
                        case .bytes: 1 << 20
                        case .sent(let count, _): count
                        default: nil
                        }
                    guard let count, count >= 1 << 20 else { return }
                    if number % 4 == 1 { task.hold() } else { task.suspend() }
                    paused.add()
                    if isFirst.withLock({ exchange(&$0, with: false) }) { reached.add() }
                }
                let body: RequestBody = isUpload ? .data(Data(count: size)) : .none
                let request = try NetworkRequest(
                    isUpload ? "PUT" : "GET", url: server.url(), body: body, options: options)
                let task = session.makeTask(with: request, receiver: receiver)
                task.resume()
                return Bench.Running(task: task, receiver: receiver)
            }
            var rounds = 0
            while runs.contains(where: { $0.receiver.record.ends == 0 }) {
                // Only the first pause is long.
                if rounds == 0 {
                    await reached.gate(at: runs.count).passage()
                    // The session has processed all pauses when another request has completed.
                    #expect(try await session.run(server.url("/last")).text == "last")
                    if !Rounds.isSoak { lead.withLock { $0 = .seconds(120) } }
                }
                let length: UInt32 = rounds == 0 && Rounds.isSoak ? 10_000_000 : 20_000
                try await TestThread.run { _ = usleep(length) }
                rounds += 1
                for run in runs { run.task.resume(); run.task.proceed() }
            }
            for (number, run) in runs.enumerated() {
                let record = await run.end()
                #expect(record.isSuccess, "\(String(describing: record.error))")
                if number % 4 == 0 {
                    #expect(record.sent == Int64(size))
                } else {
                    #expect(record.bodyCount == size && record.isPattern)
                }
            }
            print("soak: \(runs.count) transfers paused for ten seconds, \(paused.count) pauses in all")
            session.close()
            await server.stopped()
        }
    }
#endif
