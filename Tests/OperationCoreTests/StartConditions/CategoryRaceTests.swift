// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit
import Testing

/// Counts the runs of its body and detects other bodies that run at the same time.
private final class Guest: SyncOperation<Int, Never>, @unchecked Sendable {
    let entered = Locked(0)
    private let inside: Locked<Int>.Shared

    init(_ inside: Locked<Int>.Shared, _ category: OperationCategory) {
        self.inside = inside
        super.init()
        categories = [category]
    }

    override func main() {
        let isAlone = inside.change { count in
            count += 1
            return count == 1
        }
        entered.withLock { $0 += isAlone ? 1 : 100 }
        inside.change { $0 -= 1 }
        if !isCancelled { finish(withResult: 1) }
    }
}

extension Locked where Value == Int {
    /// A number that several objects share.
    fileprivate final class Shared: Sendable {
        private let value = Locked<Int>(0)

        @discardableResult
        func change<Result>(_ body: (inout Int) -> Result) -> Result { value.withLock { body(&$0) } }
    }
}

@Suite("Races for a category", .timeLimit(.minutes(Rounds.minutes)))
struct CategoryRaceTests {
    @Test func `when the holder ends while waiters are canceled, each waiter is granted or canceled`() async throws {
        let rounds = Rounds.count(ci: 3_000, soak: 1_000_000)
        NoticeHub.install()
        let failure = try await TestThread.run { () -> String? in
            let team = ThreadTeam(count: 4)
            let category = OperationCategory("raced")
            let inside = Locked<Int>.Shared()
            let manager = QueueManager("raced", width: 2)
            for round in 0..<rounds {
                if let failure = race(team, category, inside, manager) { return "round \(round): \(failure)" }
            }
            return nil
        }
        #expect(failure == nil)
        if Rounds.isSoak { print("soak: category race: \(rounds) rounds of 4 threads") }
    }
}

@available(*, noasync)
private func race(
    _ team: ThreadTeam, _ category: OperationCategory, _ inside: Locked<Int>.Shared, _ manager: QueueManager
) -> String? {
    let holder = HandDriven("holder")
    holder.categories = [category]
    holder.start()
    let guests = (0..<3).map { _ in Guest(inside, category) }
    team.run([
        { holder.finish(withResult: 1) },
        { guests[0].start() },
        {
            try? manager.add(guests[1])
            guests[0].cancel()
        },
        {
            guests[2].start()
            guests[1].cancel()
        },
    ])
    for guest in guests { guest.waitUntilFinished() }
    for guest in guests {
        let entered = guest.entered.withLock { $0 }
        // An operation canceled while executing has also run.
        let isRight = guest.isCancelled ? entered <= 1 : entered == 1
        if !isRight { return "entered \(entered) times, outcome \(String(describing: guest.outcome))" }
    }
    // The thread that ended the last operation releases its category a moment later.
    let probe = Guest(inside, category)
    probe.start()
    probe.waitUntilFinished()
    return probe.outcome == .success(1) ? nil : "the permit was lost"
}
