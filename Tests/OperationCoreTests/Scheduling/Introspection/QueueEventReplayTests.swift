// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Consistency of snapshots and events", .nothingStaysAlive, .timeLimit(.minutes(Rounds.minutes)))
struct QueueEventReplayTests {
    @Test
    func `applying events to the first snapshot gives each later snapshot, despite concurrent changes`() async throws {
        for round in 0..<Rounds.count(ci: 40, soak: 4_000) {
            let seed = Rounds.firstSeed + UInt64(round)
            let outcome = try await Self.run(seed)
            #expect(outcome.contradictions == [], "seed \(seed)")
            #expect(outcome.comparisons > 0, "seed \(seed)")
        }
    }

    private struct Comparison: Sendable {
        var contradictions: [String] = []
        var comparisons = 0
    }

    private static func run(_ seed: UInt64) async throws -> Comparison {
        let queue = QueueManager("replay", width: 2)
        // Created first, so that the number of each snapshot is among the events.
        let events = queue.events(keeping: seed.isMultiple(of: 3) ? 8 : 100_000)
        let updates = events.makeAsyncIterator()
        let snapshots = EventRecorder<QueueSnapshot>()
        try await TestThread.run {
            let team = ThreadTeam(count: 3)
            team.run((0..<3).map { thread in { drive(queue, seed &* 3 &+ UInt64(thread), snapshots) } })
        }
        await queue.resumeAndDrain()
        let last = queue.snapshot
        snapshots.record(last)
        var wanted: [UInt64: QueueSnapshot] = [:]
        for snapshot in snapshots.events { wanted[snapshot.number] = snapshot }
        return await compare(updates, wanted, last.number)
    }

    private static func compare(
        _ updates: Subscription<QueueUpdate>, _ wanted: [UInt64: QueueSnapshot], _ last: UInt64
    ) async -> Comparison {
        var result = Comparison()
        var state: QueueSnapshot?
        while state?.number != last, let update = await updates.next() {
            if let event = update.event {
                if event.number != (state?.number ?? 0) + 1 { result.contradictions.append("gap before \(event)") }
                state?.apply(event)
            } else {
                state = update.snapshot
            }
            guard let state, let snapshot = wanted[state.number] else { continue }
            result.comparisons += 1
            if state != snapshot { result.contradictions.append("\(state) is not \(snapshot)") }
        }
        return result
    }

    private static func drive(_ queue: QueueManager, _ seed: UInt64, _ snapshots: EventRecorder<QueueSnapshot>) {
        var random = SeededGenerator(seed: seed)
        var added: [HandDriven] = []
        for _ in 0..<60 {
            switch Int.random(in: 0..<12, using: &random) {
            case 0: queue.width = Int.random(in: 1...4, using: &random)
            case 1: queue.isSuspended.toggle()
            case 2: snapshots.record(queue.snapshot)
            case 3: added.randomElement(using: &random)?.cancel()
            case 4: added.randomElement(using: &random)?.queuePriority = .high
            case 5: try? queue.addBarrier(ClosureOperation {})
            case 6: try? queue.add {}
            case 7: try? queue.add(BlockOperation {})
            default:
                let fails = random.chance(1, in: 4), rests = random.chance(1, in: 3)
                let operation = HandDriven { operation in
                    let end: @Sendable () -> Void = {
                        if fails { operation.finish(withError: .first) } else { operation.finish(withResult: 1) }
                    }
                    if rests {
                        operation.rest(1, because: .waiting(.pause, .seconds(1), ""))
                        if !operation.wake(1, end) { return }
                    }
                    end()
                }
                if let other = added.randomElement(using: &random), random.chance(1, in: 2) {
                    operation.addDependency(other)
                }
                try? queue.add(operation)
                added.append(operation)
            }
        }
    }
}

extension HandDriven {
    fileprivate convenience init(main: @escaping @Sendable (HandDriven) -> Void) {
        self.init(nil, hooks: Hooks(main: main))
    }
}
