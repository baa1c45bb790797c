// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// As many operations as anybody will ever have, on a small stack; and many threads at once.
@Suite(.serialized, .timeLimit(Rounds.timeLimit))
struct QueueScaleTests {
    private static let smallStack = 512 << 10

    @Test func `a chain is built, run, cancelled half way and freed without recursion`() async throws {
        let length = Rounds.count(ci: 20_000, soak: 1_000_000)
        let start = ContinuousClock.now
        let (ran, cancelled) = try await TestThread.run(stackSize: Self.smallStack) {
            let queue = QueueManager("chain", width: 2), count = Locked(0)
            let operations = (0..<length).map { number in
                SyncProbe { operation in
                    count.withLock { $0 += 1 }
                    if number == length / 2 { operation.cancel() }
                    operation.finish(withResult: 0)
                }
            }
            try queue.addChain(operations)
            try queue.waitUntilAllFinished()
            return (count.withLock { $0 }, operations.count { $0.isCancelled })
        }
        #expect(ran == length / 2 + 1)
        #expect(cancelled == length - length / 2)
        print("soak: queue, chain of \(length), cancelled half way: \(start.duration(to: .now))")
    }

    @Test func `many that wait are cancelled at once and freed`() async throws {
        let count = Rounds.count(ci: 20_000, soak: 1_000_000)
        let start = ContinuousClock.now
        let ended = try await TestThread.run(stackSize: Self.smallStack) {
            let queue = QueueManager("storm"), root = HandDriven()
            let operations = (0..<count).map { _ in HandDriven() }
            for (number, operation) in operations.enumerated() {
                try operation.depend(on: number == 0 ? root : operations[(number - 1) / 2], otherwise: .cancel)
            }
            try queue.add(operations)
            root.start()
            root.cancel()
            try queue.waitUntilAllFinished()
            return operations.count { $0.isFinished && $0.isCancelled }
        }
        #expect(ended == count)
        print("soak: queue, tree of \(count) cancelled from its root: \(start.duration(to: .now))")
    }

    @Test func `eight threads add, cancel, finish and wait, and all of it ends`() async throws {
        let rounds = Rounds.count(ci: 300, soak: 20_000)
        try await TestThread.run {
            let team = ThreadTeam(count: 8), queue = QueueManager("race", width: 3), other = QueueManager("beside")
            for round in 0..<rounds {
                let operations = (0..<16).map { _ in HandDriven(hooks: .init(main: { $0.finish(withResult: 1) })) }
                for (number, operation) in operations.enumerated() where number > 0 && number % 3 == 0 {
                    try operation.depend(on: operations[number - 1], otherwise: .runAnyway)
                }
                team.run(
                    (0..<8).map { member in
                        {
                            let target = member.isMultiple(of: 2) ? queue : other
                            try? target.add(operations[member * 2])
                            try? target.add(operations[member * 2 + 1])
                            operations[(member * 5 + round) % 16].cancel()
                            operations[(member * 3) % 16].queuePriority = .high
                            try? queue.add(operations[(member + 1) * 2 % 16])
                            try? target.add {}
                            if member == 3 { queue.isSuspended.toggle() }
                        }
                    })
                queue.isSuspended = false
                try queue.waitUntilAllFinished()
                try other.waitUntilAllFinished()
                guard operations.allSatisfy(\.isFinished) else {
                    Issue.record("round \(round): \(operations.map(\.stateDescription))")
                    return
                }
            }
        }
    }
}
