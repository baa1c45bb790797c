// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import Testing

@Suite(.timeLimit(.minutes(3)))
struct NumberedPoolTests {
    @Test func `a kept element is reused, and a discarded one is created again with its number`() {
        var pool = NumberedPool<String>()
        var made: [Int] = []
        func make(_ number: Int) -> String? {
            made.append(number)
            return "\(number)"
        }
        let first = pool.take(orMake: make)
        let second = pool.take(orMake: make)
        #expect(first == "0" && second == "1" && pool.usedCount == 2 && pool[1] == "1" && pool[2] == nil)
        pool.putBack(0, isKept: true)
        let kept = pool.take(orMake: make)
        #expect(kept == "0" && made == [0, 1])
        pool.putBack(1, isKept: false)
        #expect(pool.usedCount == 1 && pool[1] == nil && !pool.isEmpty)
        #expect(pool.contains { $0 == "0" } && !pool.contains { $0 == "1" })
        var all: [String] = []
        pool.forEach { all.append($0) }
        #expect(all == ["0"])
        let replacement = pool.take(orMake: make)
        #expect(replacement == "1" && made == [0, 1, 1])
        pool.removeAll()
        #expect(pool.isEmpty && pool.usedCount == 0)
    }

    @Test func `an element that cannot be created leaves its number free`() {
        var pool = NumberedPool<String>()
        let none = pool.take { _ in nil }
        #expect(none == nil && pool.usedCount == 0)
        let later = pool.take { "\($0)" }
        #expect(later == "0" && pool.usedCount == 1)
    }
}
