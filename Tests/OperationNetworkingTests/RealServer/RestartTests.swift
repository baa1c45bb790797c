// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    /// Tests a server that stops and restarts while hundreds of requests are running.
    @Suite(
        .enabled(if: ServerPrograms.areThere, "Run Scripts/prepare-servers."), .timeLimit(.minutes(Rounds.minutes)),
        .serialized)
    struct RestartTests {
        private static let inFlight = 300
        private static let wires: [Wire] = Rounds.isSoak ? Wire.allCases : [.plain, .http2]

        /// The errors that a request may end with when its server stops.
        private static let allowed: Set<NetworkError.Code> = [
            .connectionLost, .cannotConnect, .truncatedBody, .secureConnectionFailed, .transferFailed,
        ]

        private func withServer(_ wire: Wire, _ body: (RealBench, NginxServer) async throws -> Void) async throws {
            let server = try await TestThread.run { try NginxServer(restarts: true) }
            let bench = RealBench(server, .curl, wire) { $0.maximumConnectionsPerHost = 64 }
            let result: Result<Void, any Error>
            do { result = .success(try await body(bench, server)) } catch { result = .failure(error) }
            bench.closeSession()
            try await TestThread.run { server.remove() }
            try result.get()
        }

        /// Keeps hundreds of requests running while `disturb` disturbs the server.
        ///
        /// Expects that each request ends once, with a correct response or an allowed error, and that requests succeed
        /// afterward.
        ///
        /// - Parameter disturb: A closure that disturbs the server. It is called again after enough good responses.
        private func load(
            _ bench: RealBench, times: Int, _ disturb: @escaping @Sendable () throws -> Void
        ) async throws -> Ledger {
            let ledger = Ledger()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<Self.inFlight {
                    group.addTask {
                        while !ledger.isClosed { ledger.add(try await Self.one(bench, number)) }
                    }
                }
                group.addTask {
                    defer { ledger.close() }
                    await ledger.good.gate(at: Self.inFlight).passage()
                    for _ in 0..<times {
                        try await TestThread.run { try disturb() }
                        await ledger.good.gate(at: ledger.good.count + Self.inFlight).passage()
                    }
                }
                try await group.waitForAll()
            }
            for _ in 0..<20 {
                let record = try await bench.get("/small")
                #expect(record.bodyCount == 100, "\(record)")
            }
            return ledger
        }

        private static func one(_ bench: RealBench, _ number: Int) async throws -> RecordingReceiver.Record {
            let request =
                switch number % 3 {
                case 0: try bench.request("GET", "/text")
                case 1: try bench.request("POST", "/spoken", body: .data(Data(count: 1_000)))
                default: try bench.request("GET", "/small")
                }
            let record = await bench.run(request)
            if let error = record.error {
                #expect(allowed.contains(error.code), "\(error)")
            } else {
                let count = number % 3 == 0 ? 110_000 : number % 3 == 2 ? 100 : record.bodyCount
                #expect(record.status == 200 && record.bodyCount == count)
            }
            return record
        }

        /// The outcomes of all requests.
        private final class Ledger: Sendable {
            private let state = Locked((failed: [NetworkError.Code: Int](), isClosed: false))
            let good = Tally()

            var failed: [NetworkError.Code: Int] { state.withLock { $0.failed } }
            var isClosed: Bool { state.withLock { $0.isClosed } }

            func close() { state.withLock { $0.isClosed = true } }

            func add(_ record: RecordingReceiver.Record) {
                if let error = record.error {
                    state.withLock { $0.failed[error.code, default: 0] += 1 }
                } else {
                    good.add()
                }
            }
        }

        @Test(arguments: wires)
        func `requests may fail while a server restarts, and succeed afterward`(
            _ wire: Wire
        ) async throws {
            try await withServer(wire) { bench, server in
                let ledger = try await load(bench, times: Rounds.count(ci: 1, soak: 50)) {
                    server.stop()
                    try server.start()
                }
                print("soak: restarts over \(wire): \(ledger.good.count) answers, errors \(ledger.failed)")
            }
        }

        @Test(arguments: [Wire.plain, .secure], ["GET", "POST"])
        func `a request after the server closed its idle connections uses a new connection`(
            _ wire: Wire, _ method: String
        ) async throws {
            try await withServer(wire) { bench, server in
                #expect(try await bench.get("/small").isSuccess)
                try await TestThread.run {
                    try server.quit()
                    try server.start()
                }
                let record = await bench.run(try bench.request(method, "/spoken"))
                #expect(record.status == 200 && record.isSuccess, "\(String(describing: record.error))")
                #expect(record.metrics?.isConnectionReused == false)
            }
        }

        @Test(arguments: wires)
        func `most requests succeed while the server is reloaded`(_ wire: Wire) async throws {
            try await withServer(wire) { bench, server in
                let ledger = try await load(bench, times: Rounds.count(ci: 1, soak: 100)) { try server.reload() }
                print("soak: reloads over \(wire): \(ledger.good.count) answers, errors \(ledger.failed)")
                #expect(ledger.good.count > ledger.failed.values.reduce(0, +))
            }
        }
    }
#endif
