// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// Tests a realm, a list of paused operations, two queues and a server on real threads.
@Suite("Authentication under random events", .timeLimit(.minutes(Rounds.minutes)))
struct AuthenticationStormTests {
    @Test func `under random events, every operation finishes, and none is left waiting`() async throws {
        for seed in Rounds.firstSeed..<Rounds.firstSeed + UInt64(Rounds.count(ci: 4, soak: 400)) {
            let bench = try TokenBench()
            do {
                // Its queues hold the failed operations.
                var storm = Storm(bench, seed: seed)
                try await storm.pass()
            }
            try await bench.bench.checkNothingIsLeft()
        }
    }
}

private struct Storm {
    let bench: TokenBench
    let seed: UInt64
    let authenticator: Authenticator<String>
    let unpaid = PostponedOperations("until it is paid") { $0.error.status == 402 }
    let queues = [QueueManager("two", width: 2), QueueManager("three", width: 3)]
    var generator: SeededGenerator
    private let change: PostponedOperations.Change = { try $0.with("X-Receipt", "1") }

    init(_ bench: TokenBench, seed: UInt64) {
        (self.bench, self.seed) = (bench, seed)
        generator = SeededGenerator(seed: seed)
        bench.server.route("GET", "/") { [good = bench.good] request in
            guard request["Authorization"] == "Bearer " + good.value else { return .status(401) }
            return request["X-Receipt"] == "1" ? .text("Hello") : .status(402)
        }
        authenticator = bench.authenticator(
            change: { options in
                options.clock = SystemClock.shared
                options.pace = PostponementPace(3, every: .milliseconds(1))
                options.maximumRefreshes = 1_000
            },
            refresh: { [good = bench.good, asked = bench.asked] in
                let token = "fetched \(asked.count)"
                good.value = token
                return token
            })
    }

    mutating func pass() async throws {
        let operations = (0..<40).map { _ in
            let operation = bench.bench.text()
            operation.authenticate(by: authenticator)
            operation.postponed = unpaid
            return operation
        }
        for operation in operations {
            try queues.randomElement(using: &generator)?.add(operation)
            for _ in 0..<3 { happen(to: operations) }
            await Task.yield()
        }
        for operation in operations { _ = operation.resume() }
        while operations.contains(where: { $0.outcome == nil }) {
            unpaid.runAll(changing: change)
            await Task.yield()
        }
        for operation in operations {
            await operation.ended()
            let error = operation.outcome?.error
            #expect(error == nil || error?.code == .credentialRejected, "seed \(seed): \(error.map { "\($0)" } ?? "")")
        }
        for queue in queues { await queue.drained() }
        // The thread that pauses an operation may be slower than the thread that canceled it.
        await until { [authenticator, unpaid] in authenticator.postponedCount == 0 && unpaid.count == 0 }
        #expect(authenticator.postponedCount == 0 && unpaid.count == 0, "seed \(seed)")
    }

    private mutating func happen(to operations: [NetworkDataOperation<String>]) {
        guard let operation = operations.randomElement(using: &generator) else { return }
        switch Int.random(in: 0..<12, using: &generator) {
        case 0: operation.cancel()
        case 1, 2: _ = operation.suspend()
        case 3, 4: _ = operation.resume()
        case 5: bench.good.value = "dead"
        case 6: authenticator.set(bench.good.value)
        case 7, 8: unpaid.runAll()
        case 9: unpaid.runAll(changing: change)
        default: break
        }
    }
}
