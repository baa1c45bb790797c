// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// An operation that calls somebody when it is asked for its name, as the queue does that refuses it.
private final class Named: AsyncOperation<Int, Flaw>, @unchecked Sendable {
    let onName = Locked<(@Sendable () -> Void)?>(nil)

    override var name: String? {
        get {
            let hook = onName.withLock { hook in
                defer { hook = nil }
                return hook
            }
            hook?()
            return "refused"
        }
        set {}
    }

    override func main() { finish(withResult: 1) }
}

@Suite("Unique work that the queue refuses", .timeLimit(.minutes(Rounds.minutes)))
struct UniqueWorkRefusalTests {
    @Test func `who came behind one that is refused gets its turn`() async throws {
        let queue = QueueManager("unique"), group = GroupOperation(policy: .failFast)
        let refused = Named(), next = HandDriven()
        try group.add(refused)
        // Between its arrival in the line and its departure.
        refused.onName.withLock { hook in
            hook = { _ = try? queue.addUnique(next, key: "a", policy: .append) }
        }
        #expect(throws: QueueError.self) { try queue.addUnique(refused, key: "a", policy: .append) }
        try #require(await eventually { next.state == .executing })
        next.finish(withResult: 1)
        await queue.drained()
        #expect(await eventually { queue.engine.uniqueWork.count == 0 })
    }

    @Test("Who gets the last place waits for nobody who was refused", arguments: [0, 1])
    func racesForTheLastPlace(presentCount: Int) async throws {
        let rounds = Rounds.count(ci: 2_000, soak: 100_000)
        let failure = try await TestThread.run { () -> String? in
            let team = ThreadTeam(count: 3)
            for round in 0..<rounds {
                if let failure = autoreleasing({ race(team, presentCount) }) { return "round \(round): \(failure)" }
            }
            return nil
        }
        #expect(failure == nil)
    }
}

/// One round: three threads add, and there is one place beside those that are present.
@available(*, noasync)
private func race(_ team: ThreadTeam, _ presentCount: Int) -> String? {
    let queue = QueueManager("last place", width: 1)
    queue.capacity = presentCount + 1
    let present = (0..<presentCount).map { _ in HandDriven() }
    let operations = (0..<3).map { _ in HandDriven(hooks: .init(main: { $0.finish(withResult: 1) })) }
    /// Returns why it was refused, if it was.
    let add: @Sendable (HandDriven) -> QueueError? = { operation in
        do throws(QueueError) {
            try queue.addUnique(operation, key: 0, policy: .append)
            return nil
        } catch {
            return error
        }
    }
    for operation in present { _ = add(operation) }
    let lost = Locked<[HandDriven]>([])
    team.run(operations.map { operation in { if add(operation) != nil { lost.withLock { $0.append(operation) } } } })
    let refused = lost.withLock { $0 }
    if presentCount > 0 {
        if refused.count != 2 { return "\(refused.count) refused" }
        // Nothing is left of the first attempt, so that nobody waits for them.
        for operation in refused {
            if let error = add(operation), error.code != .full { return "refused again: \(error)" }
        }
    }
    for operation in present { operation.finish(withResult: 1) }
    for operation in operations where !refused.contains(operation) {
        let ended = Gate()
        operation.whenEnded { ended.open() }
        if !ended.waits(upTo: .seconds(20)) { return "one waits for ever" }
    }
    try? queue.waitUntilAllFinished()
    if let error = refused.first.flatMap(add) { return "refused at last: \(error)" }
    try? queue.waitUntilAllFinished()
    return nil
}
