// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct TimerHeapTests {
    /// A slow reference implementation: a list sorted by time, then by insertion.
    private struct SortedList {
        private(set) var entries: [(due: OperationInstant, id: UInt64, payload: Int)] = []

        mutating func insert(_ payload: Int, due: OperationInstant, id: UInt64) {
            let place = entries.firstIndex { $0.due > due } ?? entries.count
            entries.insert((due, id, payload), at: place)
        }

        mutating func remove(_ id: UInt64) -> Int? {
            entries.firstIndex { $0.id == id }.map { entries.remove(at: $0).payload }
        }

        mutating func popDue(at now: OperationInstant) -> Int? {
            guard let first = entries.first, first.due <= now else { return nil }
            return entries.removeFirst().payload
        }
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `a timer heap behaves like a sorted list`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var heap = TimerHeap<Int>(), list = SortedList(), ids: [UInt64] = []
        // Few different times, so that many entries are due together.
        let moments = [3, 30, 3_000][Int(seed % 3)]
        for step in 0..<3_000 {
            let moment = OperationInstant(offset: .seconds(Int.random(in: 0..<moments, using: &random)))
            let isGrowing = (step / 500).isMultiple(of: 2)
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<(isGrowing ? 6 : 2):
                let id = heap.insert(step, due: moment)
                list.insert(step, due: moment, id: id)
                ids.append(id)
            case 9 where !ids.isEmpty, 8 where !ids.isEmpty:
                // Any entry that was ever inserted, including removed ones.
                let id = ids[Int.random(in: 0..<ids.count, using: &random)]
                let removed = heap.remove(id), expected = list.remove(id)
                #expect(removed == expected, "seed \(seed), step \(step)")
            default:
                let popped = heap.popDue(at: moment), expected = list.popDue(at: moment)
                #expect(popped == expected, "seed \(seed), step \(step)")
            }
            guard heap.count == list.entries.count, heap.nextDue == list.entries.first?.due,
                heap.isEmpty == list.entries.isEmpty
            else { return unmet("seed \(seed), step \(step): \(heap.count) entries, not \(list.entries.count)") }
        }
        while let expected = list.popDue(at: .distantFuture) {
            guard heap.popDue(at: .distantFuture) == expected
            else { return unmet("seed \(seed): wrong order at the end") }
        }
        #expect(heap.isEmpty)
        #expect(heap.popDue(at: .distantFuture) == nil)
        #expect(heap.nextDue == nil)
    }

    @Test(arguments: 0..<6 as Range<UInt64>)
    func `thousands of entries that are due before the first one keep their order`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let dues = (0..<4_000).map { index in
            let offset = Int64.random(in: -1 << 40..<1 << [4, 30, 40][index % 3], using: &random)
            return index == 0 ? .distantFuture : OperationInstant(offset: .nanoseconds(offset))
        }
        var heap = TimerHeap<Int>()
        let ids = dues.indices.map { heap.insert($0, due: dues[$0]) }
        for index in dues.indices where index % 4 == 1 { #expect(heap.remove(ids[index]) == index) }
        for index in dues.indices.filter({ $0 % 4 != 1 }).sorted(by: { (dues[$0], $0) < (dues[$1], $1) }) {
            guard heap.nextDue == dues[index], heap.popDue(at: .distantFuture) == index
            else { return unmet("seed \(seed): wrong order at entry \(index)") }
        }
        #expect(heap.isEmpty)
    }

    @Test func `identifiers are not reused`() {
        var heap = TimerHeap<Int>()
        let first = heap.insert(1, due: .distantFuture)
        #expect(heap.remove(first) == 1)
        #expect(heap.remove(first) == nil)
        let second = heap.insert(2, due: .distantFuture)
        #expect(first != second)
        #expect(heap.remove(first) == nil)
        #expect(heap.count == 1)
    }

    @Test func `a timer heap releases removed entries`() {
        let census = LiveObjects()
        var heap = TimerHeap<Witness>()
        let ids = (0..<10).map { _ in heap.insert(census.track(Witness()), due: .distantFuture) }
        for id in ids.dropLast(5) { _ = heap.remove(id) }
        #expect(census.count == 5)
        while heap.popDue(at: .distantFuture) != nil {}
        #expect(census.count == 0)
    }
}
