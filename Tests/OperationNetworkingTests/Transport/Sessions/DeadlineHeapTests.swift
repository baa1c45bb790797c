// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct DeadlineHeapTests {
    @Test(arguments: 0..<20)
    func `a deadline heap behaves like a sorted list`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var heap = DeadlineHeap()
        var model: [Int: Int64] = [:]
        for _ in 0..<3000 {
            let number = Int.random(in: 0..<60, using: &generator)
            switch Int.random(in: 0..<4, using: &generator) {
            case 0, 1:
                let due = Int64.random(in: 0..<1000, using: &generator)
                heap.set(number, due: due)
                model[number] = due
            case 2:
                heap.remove(number)
                model[number] = nil
            default:
                let now = Int64.random(in: 0..<300, using: &generator)
                let popped = heap.popDue(at: now)
                let first = model.values.min()
                #expect((popped != nil) == (first.map { $0 <= now } ?? false))
                if let popped {
                    #expect(model[popped] == first)
                    model[popped] = nil
                }
            }
            #expect(heap.count == model.count && heap.nextDue == model.values.min())
            #expect(heap.due(number) == model[number])
        }
    }
}
