// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import OperationCore

/// Returns the times for a tree of operations whose bodies create other operations and add their results (skynet).
func spawningFigures(_ scale: Scale) -> [Figure] {
    let leaves = scale.sized(100_000, rounds: 5)
    return [
        .speedup(
            "spawn by adding in bodies: OperationQueue", unit: "ns",
            compare(leaves.sized(10_000, rounds: 5), ours: runSpawning, peer: runPeerSpawning)),
        .speedup(
            "spawn by adding in bodies: nested TaskGroups", unit: "ns",
            compare(leaves, ours: runSpawning, peer: runTaskSpawning)),
        .speedup(
            "spawn by startAndWait in bodies: nested TaskGroups", unit: "ns",
            compare(leaves, ours: runJoining, peer: runTaskSpawning)),
        // In an `OperationQueue` of this width, the workload would wait forever.
        .speedup(
            "spawn by adding, and wait for each in the body: nested TaskGroups", unit: "ns",
            compare(leaves.sized(1_000, rounds: 5), ours: runWaiting, peer: runTaskSpawning)),
    ]
}

/// The part of the tree below a node, as the range of the numbers of its leaves.
private struct Branch {
    var first: Int
    var count: Int

    var isLeaf: Bool { count == 1 }
    var parts: [Branch] { (0..<10).map { Branch(first: first + $0 * count / 10, count: count / 10) } }

    static func sum(_ count: Int) -> Int { count * (count - 1) / 2 }
}

/// An operation that adds its child operations to the queue and ends.
private final class SpawningOperation: SyncOperation<Void, Never>, @unchecked Sendable {
    // Sendable: the class has no mutable state.

    private let branch: Branch
    private let queue: QueueManager
    private let sum: Counter

    init(_ branch: Branch, _ queue: QueueManager, _ sum: Counter) {
        self.branch = branch
        self.queue = queue
        self.sum = sum
    }

    override func main() {
        if branch.isLeaf {
            sum.add(branch.first)
        } else {
            must { try queue.add(branch.parts.map { SpawningOperation($0, queue, sum) }) }
        }
        finish(withResult: ())
    }
}

func runSpawning(_ count: Int) {
    let sum = Counter()
    withQueue { queue in try queue.add(SpawningOperation(Branch(first: 0, count: count), queue, sum)) }
    check(sum.value, is: Branch.sum(count), "sum of the leaves")
}

private final class PeerSpawningOperation: Operation, @unchecked Sendable {
    // Sendable: the class has no mutable state.

    private let branch: Branch
    private let queue: OperationQueue
    private let sum: Counter

    init(_ branch: Branch, _ queue: OperationQueue, _ sum: Counter) {
        self.branch = branch
        self.queue = queue
        self.sum = sum
    }

    override func main() {
        if branch.isLeaf {
            sum.add(branch.first)
        } else {
            queue.addOperations(
                branch.parts.map { PeerSpawningOperation($0, queue, sum) }, waitUntilFinished: false)
        }
    }
}

private func runPeerSpawning(_ count: Int) {
    let sum = Counter()
    withPeerQueue { queue in
        queue.addOperation(PeerSpawningOperation(Branch(first: 0, count: count), queue, sum))
    }
    check(sum.value, is: Branch.sum(count), "sum of the leaves")
}

/// An operation that starts its child operations on its own thread, one after another, and adds their results.
private final class JoiningOperation: SyncOperation<Int, Never>, @unchecked Sendable {
    // Sendable: the class has no mutable state.

    private let branch: Branch

    init(_ branch: Branch) {
        self.branch = branch
    }

    override func main() {
        finish(
            withResult: branch.isLeaf
                ? branch.first
                : branch.parts.reduce(0) { sum, part in sum + must { try JoiningOperation(part).startAndWait() } })
    }
}

private func runJoining(_ count: Int) {
    let sum = Counter()
    withQueue { queue in
        // The branches of the first level run at the same time, so that all cores are busy.
        for part in Branch(first: 0, count: count).parts {
            try queue.add { sum.add(must { try JoiningOperation(part).startAndWait() }) }
        }
    }
    check(sum.value, is: Branch.sum(count), "sum of the leaves")
}

/// An operation that adds its child operations to the queue and waits for each of them, without holding its slot.
private final class WaitingOperation: SyncOperation<Int, Never>, @unchecked Sendable {
    // Sendable: the class has no mutable state.

    private let branch: Branch
    private let queue: QueueManager

    init(_ branch: Branch, _ queue: QueueManager) {
        self.branch = branch
        self.queue = queue
    }

    override func main() {
        if branch.isLeaf { return finish(withResult: branch.first) }
        let parts = branch.parts.map { WaitingOperation($0, queue) }
        must { try queue.add(parts) }
        finish(withResult: parts.reduce(0) { sum, part in sum + must { try part.startAndWait() } })
    }
}

private func runWaiting(_ count: Int) {
    let sum = Counter()
    withQueue { queue in
        let root = WaitingOperation(Branch(first: 0, count: count), queue)
        try queue.add(root)
        sum.add(try root.startAndWait())
    }
    check(sum.value, is: Branch.sum(count), "sum of the leaves")
}

private func runTaskSpawning(_ count: Int) {
    let sum = Counter()
    withTask { sum.add(await taskSum(of: Branch(first: 0, count: count))) }
    check(sum.value, is: Branch.sum(count), "sum of the leaves")
}

private func taskSum(of branch: Branch) async -> Int {
    if branch.isLeaf { return branch.first }
    return await withTaskGroup(of: Int.self) { group in
        for part in branch.parts { group.addTask { await taskSum(of: part) } }
        return await group.reduce(0, +)
    }
}
