// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.timeLimit(.minutes(Rounds.minutes)))
    struct OperationStormTests {
        private struct Storm {
            let server: LoopbackServer
            let session: any NetworkSession
            let transport: CurlSession
            let census = LiveObjects()

            init(connections: Int) throws {
                let options = with(LoopbackServer.Options()) { $0.keptRequests = 16 }
                server = try LoopbackServer(options)
                StormRequest.serve(on: server)
                (session, transport) = SessionKind.exchangeOverCurl.makeCurlPair {
                    $0.maximumConnectionsPerHost = connections
                }
            }

            func makeOperation(_ request: StormRequest) -> NetworkDataOperation<StormRequest.Album> {
                request.makeOperation(server, session)
            }

            /// Runs operations in sequence.
            func runInSequence(_ numbers: Range<Int>) async throws {
                let queue = QueueManager("sequence", width: 1)
                for number in numbers {
                    let request = StormRequest(number)
                    let operation = makeOperation(request)
                    // The census keeps an entry for each object, so it tracks only some.
                    if number < 1_000 { census.track(operation) }
                    let heads = server.counts.heads
                    try queue.add(operation)
                    if request == .silent {
                        // Half of them are canceled while they wait for a response, the others at any moment.
                        if number.isMultiple(of: 2) { await server.counts { $0.heads > heads } }
                        operation.cancel()
                    }
                    let outcome = await operation.finalOutcome
                    if !request.isRight(outcome) { Issue.record("\(number), \(request): \(outcome)") }
                }
                await queue.drained()
            }

            func end() async throws {
                transport.close()
                await server.stopped()
                let count = try await TestThread.run { census.countAtRest() }
                #expect(count == 0, "alive: \(census.types)")
            }
        }

        @Test func `operations in sequence do not increase memory use`() async throws {
            let count = Rounds.count(ci: 600, soak: 100_000)
            let storm = try Storm(connections: 2)
            try await storm.runInSequence(0..<count / 10)
            let early = ProcessShape()
            let start = ContinuousClock.now
            try await storm.runInSequence(count / 10..<count)
            let seconds = start.duration(to: .now) / .seconds(1)
            let late = try await ProcessShape.settled(since: early, connections: 2)
            print("soak: \(count) operations in sequence, \(Int(Double(count) * 0.9 / seconds)) a second")
            print("soak: after a tenth \(early); at the end \(late)")
            #expect(late.growth(since: early, connections: 2) == [], "\(early) became \(late)")
            try await storm.end()
        }

        @Test func `thousands of concurrent operations in a queue all end with the expected outcome`() async throws {
            let count = Rounds.count(ci: 500, soak: 10_000)
            let storm = try Storm(connections: 48)
            let start = ContinuousClock.now
            do {
                // The queue keeps its last failures, to run them again, until it is released.
                let queue = QueueManager("storm", width: count)
                let requests = (0..<count).map { StormRequest($0) }
                let operations = requests.map { storm.census.track(storm.makeOperation($0)) }
                try queue.add(operations)
                // Some operations are canceled while they wait for a response, and some before they are sent.
                for (request, operation) in zip(requests, operations) where request == .silent { operation.cancel() }
                await queue.drained()
                for (request, operation) in zip(requests, operations) where !request.isRight(operation.outcome) {
                    Issue.record("\(request): \(String(describing: operation.outcome))")
                }
                let seconds = start.duration(to: .now) / .seconds(1)
                print("soak: \(count) operations at once, all ended after \(seconds) s; \(queue.counts)")
                #expect(queue.counts.ended == count && queue.counts.unended == 0)
            }
            try await storm.end()
        }
    }
#endif
