// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct SlotLineTests {
    private typealias Table = SlotTable<Int>

    /// A table with one slot for one host, which is taken.
    private func table() -> Table {
        var table = Table(perHost: 1, total: 1, lookups: 1)
        _ = table.enter(-1, host: "a", isNumeric: true)
        _ = table.next()
        return table
    }

    private func nextAfterRelease(_ table: inout Table) -> Int? {
        table.release(0)
        return table.next()?.ticket
    }

    @Test func `tasks of a higher priority come first, and tasks of equal priority in order of arrival`() {
        var table = table()
        let priorities: [TransferPriority] = [.low, .normal, .high, .low, .normal, .high]
        for (number, priority) in priorities.enumerated() {
            _ = table.enter(number, host: "a", isNumeric: true, priority: priority)
        }
        var order: [Int] = []
        while let ticket = nextAfterRelease(&table) { order.append(ticket) }
        #expect(order == [2, 5, 1, 4, 0, 3])
    }

    @Test func `the first task in the line is overtaken at most seven times`() {
        var table = table()
        for number in 0..<3 { _ = table.enter(number, host: "a", isNumeric: true, priority: .low) }
        var order: [Int] = []
        for number in 0..<40 {
            // A task with a high priority is always waiting.
            for other in 0..<2 {
                _ = table.enter(100 + 2 * number + other, host: "a", isNumeric: true, priority: .high)
            }
            order.append(nextAfterRelease(&table) ?? -1)
        }
        #expect(order.firstIndex(of: 0) == 7 && order.firstIndex(of: 1) == 15 && order.firstIndex(of: 2) == 23)
        let high = order.filter { $0 >= 100 }
        #expect(high == high.sorted())
    }

    @Test func `a task that left the line is skipped, whatever its priority`() {
        var table = table()
        let place = table.enter(0, host: "a", isNumeric: true, priority: .high)
        _ = table.enter(1, host: "a", isNumeric: true, priority: .low)
        #expect(table.leave(place) == 0)
        #expect(nextAfterRelease(&table) == 1)
        #expect(nextAfterRelease(&table) == nil)
    }

    @Test(arguments: 0..<20) func `no task is lost and no task gets two slots`(_ seed: UInt64) {
        var generator = SeededGenerator(seed: Rounds.firstSeed &+ seed)
        var table = table()
        var (entered, served) = (0, [Int]())
        for _ in 0..<300 {
            if Bool.random(using: &generator) {
                let priority = [TransferPriority.low, .normal, .high].randomElement(using: &generator) ?? .normal
                _ = table.enter(entered, host: "a", isNumeric: true, priority: priority)
                entered += 1
            } else if table.activeCount > 0 {
                if let ticket = nextAfterRelease(&table) { served.append(ticket) }
            } else if let ticket = table.next()?.ticket {
                served.append(ticket)
            }
        }
        while table.activeCount > 0 {
            if let ticket = nextAfterRelease(&table) { served.append(ticket) }
        }
        while let ticket = table.next()?.ticket {
            served.append(ticket)
            table.release(0)
        }
        #expect(served.sorted() == Array(0..<entered))
    }
}
