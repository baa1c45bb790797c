// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(Rounds.minutes)))
struct ForgettingListTests {
    @Test func `removed elements free their storage, and the remaining elements keep their order`() {
        var random = SeededGenerator(seed: 7), list = ForgettingList<UInt64>(), live: [UInt64] = []
        for id in 1...5_000 as ClosedRange<UInt64> {
            list.append(id, id: id)
            live.append(id)
            while live.count > 50 {
                let taken = live.remove(at: Int.random(in: 0..<live.count, using: &random))
                #expect(list.remove(taken) == taken)
                #expect(list.remove(taken) == nil)
            }
            #expect(list.storedCount <= 210)
        }
        #expect(list.elements == live)
        #expect(list.takeAll() == live)
        #expect(list.isEmpty)
    }

    @Test func `a list is empty after all elements are removed, in any order`() {
        var random = SeededGenerator(seed: 3)
        for count in [1, 2, 3, 10, 100] as [UInt64] {
            var list = ForgettingList<UInt64>()
            for id in 1...count { list.append(id, id: id) }
            for id in (1...count).shuffled(using: &random) {
                #expect(!list.isEmpty)
                _ = list.remove(id)
            }
            #expect(list.isEmpty)
            #expect(list.lastID == 0)
        }
    }

    @Test func `matching elements can be removed, and the other elements can be updated in place`() {
        var list = ForgettingList<Int>()
        for id in 1...10 { list.append(id, id: UInt64(id)) }
        #expect(list.takeAll { $0.isMultiple(of: 2) } == [2, 4, 6, 8, 10])
        #expect(list.lastID == 9)
        let old = list.update(3) { element in
            defer { element = 30 }
            return element
        }
        #expect(old == 3)
        let missing: Void? = list.update(4) { $0 = 40 }
        #expect(missing == nil)
        #expect(list.elements == [1, 30, 5, 7, 9])
    }

    @Test func `elements are taken from the start in their order, also between removals and additions`() {
        var random = SeededGenerator(seed: 5), list = ForgettingList<UInt64>(), live: [UInt64] = []
        for id in 1...5_000 as ClosedRange<UInt64> {
            list.append(id, id: id)
            live.append(id)
            if Bool.random(using: &random), let taken = live.randomElement(using: &random) {
                live.removeAll { $0 == taken }
                #expect(list.removeFirst { $0 == taken } == taken)
            }
            if live.count > 20 {
                let count = Int.random(in: 0..<live.count, using: &random)
                #expect(list.take(count) == Array(live.prefix(count)))
                live.removeFirst(count)
            }
            #expect(list.count == live.count && list.isEmpty == live.isEmpty && list.storedCount <= 210)
        }
        #expect(list.take(.max) == live)
        #expect(list.popFirst() == nil && list.storedCount == 0)
    }
}
