// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit
import Testing

@Suite("A line that any element can leave", .timeLimit(.minutes(3)))
struct ArrivalLineTests {
    @Test(arguments: UInt64(0)..<20)
    func `a line behaves like an array for random insertions and removals`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var line = ArrivalLine<Int>()
        var model: [Int] = []
        for _ in 0..<2_000 {
            let element = Int.random(in: 0..<60, using: &random)
            switch Int.random(in: 0..<5, using: &random) {
            case 0, 1:
                line.append(element)
                if !model.contains(element) { model.append(element) }
            case 2, 3:
                let wasThere = line.remove(element)
                #expect(wasThere == model.contains(element))
                model.removeAll { $0 == element }
            default:
                let first = line.popFirst()
                #expect(first == model.first)
                if !model.isEmpty { model.removeFirst() }
            }
            #expect(line.all == model && line.count == model.count && line.first == model.first, "seed \(seed)")
        }
    }

    @Test func `repeated insertions and removals do not increase memory use`() {
        var line = ArrivalLine<Int>()
        line.append(-1)
        for element in 0..<10_000 {
            line.append(element)
            line.remove(element)
            #expect(line.extent <= 34)
        }
        #expect(line.all == [-1])
    }
}
