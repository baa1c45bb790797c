// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationTestKit
import Testing

@testable import OperationCore

@Suite(.timeLimit(.minutes(Rounds.minutes)))
struct CopyOnWriteTests {
    private func makeCopies(_ count: Int) -> [CopyOnWrite<[Int]>] {
        Array(repeating: CopyOnWrite(wrappedValue: [0]), count: count)
    }

    @Test func `a value with one owner is changed in place, and a shared value is copied first`() {
        var original = CopyOnWrite(wrappedValue: Array(0..<100))
        let first = ObjectIdentifier(original.storage)
        original.wrappedValue[0] = -1
        #expect(ObjectIdentifier(original.storage) == first)
        var copy = original
        copy.wrappedValue[0] = -2
        #expect(ObjectIdentifier(original.storage) == first && ObjectIdentifier(copy.storage) != first)
        #expect(original.wrappedValue[0] == -1 && copy.wrappedValue[0] == -2)
        // Each value has one owner again.
        let second = ObjectIdentifier(copy.storage)
        original.wrappedValue[1] = -3
        copy.wrappedValue[1] = -4
        #expect(ObjectIdentifier(original.storage) == first && ObjectIdentifier(copy.storage) == second)
        #expect(original.wrappedValue[1] == -3 && copy.wrappedValue[1] == -4)
    }

    @Test func `Race: threads that change their own copies never see the values of other threads`() async throws {
        let rounds = Rounds.count(ci: 5_000, soak: 500_000)
        let wrong = try await TestThread.run { () -> Int in
            let team = ThreadTeam(count: 2), wrong = Locked(0)
            for round in 0..<rounds {
                // In every second round, the threads have the only copies of the value.
                let copies = Locked(makeCopies(2 + round % 2))
                team.run(
                    (0..<2).map { number in
                        {
                            guard var own = copies.withLock({ $0.popLast() }) else { return }
                            for step in 1...3 { own.wrappedValue.append(10 * number + step) }
                            var other = own
                            other.wrappedValue[0] = -1
                            let added = (1...3).map { 10 * number + $0 }
                            if own.wrappedValue != [0] + added || other.wrappedValue != [-1] + added {
                                wrong.withLock { $0 += 1 }
                            }
                        }
                    })
                if let kept = copies.withLock({ $0.last }), kept.wrappedValue != [0] { wrong.withLock { $0 += 1 } }
            }
            return wrong.withLock { $0 }
        }
        #expect(wrong == 0)
    }
}
