// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// The tracks of a timeline in a heap, the one that becomes free first at its top.
package struct TrackHeap: Sendable {
    private var heap: [(end: OperationInstant, track: Int)] = []

    package init() {}

    /// Takes a track that is free before that moment, or a new one, until the other.
    package mutating func take(
        before began: OperationInstant, until end: OperationInstant
    ) -> (track: Int, isNew: Bool) {
        guard let first = heap.first, first.end < began else {
            heap.append((end, heap.count))
            rise(heap.count - 1)
            return (heap.count - 1, true)
        }
        heap[0].end = end
        sink(0)
        return (first.track, false)
    }

    private func precedes(_ left: Int, _ right: Int) -> Bool {
        (heap[left].end, heap[left].track) < (heap[right].end, heap[right].track)
    }

    private mutating func rise(_ index: Int) {
        var index = index
        while index > 0, precedes(index, (index - 1) / 2) {
            heap.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    private mutating func sink(_ index: Int) {
        var index = index
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2] where child < heap.count && precedes(child, least) {
                least = child
            }
            if least == index { return }
            heap.swapAt(index, least)
            index = least
        }
    }
}
