// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import OperationCore

/// Returns the time for a tree in which each node has ten children and adds their results (skynet).
func skynetFigures(_ scale: Scale) -> [Figure] {
    let leaves = scale.sized(100_000, rounds: 11)
    return [
        .ratio(
            "skynet, declared groups: nested task groups", unit: "ns",
            compare(leaves, ours: runDeclared, peer: runTasks), target: .atMost(1.5)),
        .ratio(
            "skynet, async bodies: nested task groups", unit: "ns",
            compare(leaves, ours: runBodies, peer: runTasks), target: .none),
    ]
}

/// The part of the tree below a node, as the range of the numbers of its leaves.
private struct Branch: Sendable {
    var first: Int
    var count: Int

    var isLeaf: Bool { count == 1 }
    var parts: [Branch] {
        let width = min(count, 10)
        return (0..<width).map { part in
            let start = part * count / width
            return Branch(first: first + start, count: (part + 1) * count / width - start)
        }
    }

    static func sum(_ count: Int) -> Int { count * (count - 1) / 2 }
}

/// A leaf whose result is its number.
private final class Leaf: SyncOperation<Int, GroupFailure>, @unchecked Sendable {
    // Sendable: the class has no mutable state.

    private let number: Int

    init(_ number: Int) {
        self.number = number
    }

    override func main() { finish(withResult: number) }
}

private func runDeclared(_ count: Int) { run(count, by: declared) }

private func declared(_ branch: Branch) -> TypedOperation<Int, GroupFailure> {
    if branch.isLeaf { return Leaf(branch.first) }
    return GroupOperation.all(branch.parts.map(declared)) { $0.reduce(0, +) }
}

private func runBodies(_ count: Int) { run(count, by: withBody) }

private func withBody(_ branch: Branch) -> TypedOperation<Int, GroupFailure> {
    if branch.isLeaf { return Leaf(branch.first) }
    return GroupOperation { group in
        try await withThrowingTaskGroup(of: Int.self) { tasks in
            for part in branch.parts { tasks.addTask { try await group.run(withBody(part)) } }
            return try await tasks.reduce(0, +)
        }
    }
}

private func run(_ count: Int, by make: (Branch) -> TypedOperation<Int, GroupFailure>) {
    let queue = QueueManager("benchmark", width: coreCount)
    let sum = must {
        let root = make(Branch(first: 0, count: count))
        try queue.add(root)
        let sum = try root.startAndWait()
        try queue.waitUntilAllFinished()
        return sum
    }
    check(sum, is: Branch.sum(count), "sum of the leaves")
}

private func runTasks(_ count: Int) {
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
