// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Unique work that the queue refuses", .timeLimit(.minutes(Rounds.minutes)))
struct UniqueWorkRefusalTests {
    @Test func `an operation added behind a refused one gets its turn`() async throws {
        let queue = QueueManager("unique"), group = GroupOperation(policy: .failFast)
        let refused = NameCaller(), next = HandDriven()
        try group.add(refused)
        // Runs between the arrival of the refused operation in the line and its departure.
        refused.onName.withLock { hook in
            hook = { _ = try? queue.addUnique(next, key: "a", policy: .append) }
        }
        #expect(throws: QueueError.self) { try queue.addUnique(refused, key: "a", policy: .append) }
        try #require(await eventually { next.state == .executing })
        next.finish(withResult: 1)
        await queue.drained()
        #expect(await eventually { queue.engine.uniqueWork.count == 0 })
    }

    @Test("The last operation that fits into the queue does not wait for refused operations", arguments: [0, 1])
    func racesForTheLastPlace(presentCount: Int) async throws {
        let rounds = Rounds.count(ci: 1_000, soak: 100_000)
        let failure = try await TestThread.run { () -> String? in
            let team = ThreadTeam(count: 4)
            for round in 0..<rounds {
                if let failure = autoreleasing({ race(team, presentCount) }) { return "round \(round): \(failure)" }
            }
            return nil
        }
        #expect(failure == nil)
    }
}

/// Plays one round, in which three threads add operations and the queue has room for one more, now or soon.
@available(*, noasync)
private func race(_ team: ThreadTeam, _ presentCount: Int) -> String? {
    let queue = QueueManager("last place", width: 2)
    queue.capacity = presentCount + 1
    let present = (0..<presentCount).map { _ in HandDriven() }
    let passing = HandDriven()
    let operations = (0..<3).map { _ in HandDriven(hooks: .init(main: { $0.finish(withResult: 1) })) }
    /// Returns the error with which the queue refused the operation, if any.
    let add: @Sendable (HandDriven) -> QueueError? = { operation in
        thrown { () throws(QueueError) in try queue.addUnique(operation, key: 0, policy: .append) }
    }
    for operation in present { _ = add(operation) }
    if presentCount > 0 { try? queue.add(passing) }
    let lost = Locked<[HandDriven]>([])
    team.run(
        operations.map { operation -> @Sendable () -> Void in
            { if add(operation) != nil { lost.withLock { $0.append(operation) } } }
        }
            + [{ passing.finish(withResult: 1) }])
    let refused = lost.withLock { $0 }
    var again: [HandDriven] = []
    for operation in refused {
        // No operation waits for a refused one, so adding it again closes no cycle.
        guard let error = add(operation) else { continue }
        if error.code != .full { return "refused again: \(error)" }
        again.append(operation)
    }
    for operation in present { operation.finish(withResult: 1) }
    for operation in operations where !again.contains(operation) {
        let ended = Gate()
        operation.whenEnded { ended.open() }
        if !ended.waits(upTo: .seconds(20)) { return "an operation waits forever" }
    }
    try? queue.waitUntilAllFinished()
    return nil
}
