// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import OperationCore

/// Returns the time for a group of n children, compared with the same n operations in a queue without a group.
///
/// Each round runs the same number of operations on both sides, in consecutive groups of n operations. Both sides use
/// one queue whose width is the number of cores.
func flatFigures(_ scale: Scale) -> [Figure] {
    [10, 100, 1_000, 10_000, 100_000].map { size in
        let scale = scale.sized(100_000, rounds: 11)
        let size = min(size, scale.count)
        return .ratio(
            "a group of \(size): the children in the queue", unit: "ns",
            compare(
                scale,
                ours: { runParts($0, of: size, runGroup) }, peer: { runParts($0, of: size, runFlat) }),
            target: .atMost(1.15))
    }
}

private func runParts(_ count: Int, of size: Int, _ run: (QueueManager, Int, Counter) throws -> Void) {
    let queue = QueueManager("benchmark", width: coreCount)
    let counter = Counter()
    var left = count
    while left > 0 {
        let part = min(size, left)
        left -= part
        must {
            try run(queue, part, counter)
            try queue.waitUntilAllFinished()
        }
    }
    check(counter.value, is: count, "children that ran")
}

private func runGroup(_ queue: QueueManager, _ count: Int, _ counter: Counter) throws {
    try queue.add(GroupOperation.all((0..<count).map { _ in CountingOperation(counter) }))
}

private func runFlat(_ queue: QueueManager, _ count: Int, _ counter: Counter) throws {
    try queue.add((0..<count).map { _ in CountingOperation(counter) })
}
