// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import OperationCore

/// Returns the time for operations, each of which depends on the previous operation.
func chainFigures(_ scale: Scale) -> [Figure] {
    let short = GraphRace(.chain, width: nil)
    let narrow = GraphRace(.chain, width: 1, isPeerFedOneByOne: true)
    let long = scale.sized(100_000, rounds: 7)
    return [
        short.figure(
            scale.sized(8_000, rounds: 5), "chain, default width, 8,000", isPeerSlow: true, target: .atLeast(500)),
        narrow.figure(scale.sized(10_000, rounds: 7), "chain, width 1 (its best), 10,000", target: .atLeast(3)),
        .speedup(
            "chain: tasks that await the one before", unit: "ns",
            compare(long, ours: { runGraph(.chain($0), width: coreCount) }, peer: runTaskChain)),
        .speedup(
            "chain: serial Dispatch queue", unit: "ns",
            compare(long, ours: { runGraph(.chain($0), width: coreCount) }, peer: runDispatchChain)),
        .ratio(
            "chain of BlockOperations, 400: the same in an OperationQueue", unit: "ns",
            compare(scale.sized(400, rounds: 11), ours: runBlockChain, peer: runPeerBlockChain), target: .none),
    ]
}

/// Runs plain operations of Foundation in a `QueueManager`.
private func runBlockChain(_ count: Int) {
    let counter = Counter()
    withQueue { queue in for operation in blockChain(count, counter) { try queue.add(operation) } }
    check(counter.value, is: count, "blocks that ran")
}

private func runPeerBlockChain(_ count: Int) {
    let counter = Counter()
    withPeerQueue { $0.addOperations(blockChain(count, counter), waitUntilFinished: false) }
    check(counter.value, is: count, "blocks that ran")
}

private func blockChain(_ count: Int, _ counter: Counter) -> [Operation] {
    let chain = (0..<count).map { _ in BlockOperation { counter.add() } }
    for (first, next) in zip(chain, chain.dropFirst()) { next.addDependency(first) }
    return chain
}

private func runTaskChain(_ count: Int) {
    let counter = Counter()
    withTask {
        var last: Task<Void, Never>?
        for _ in 0..<count {
            last = Task { [last] in
                await last?.value
                counter.add()
            }
        }
        await last?.value
    }
    check(counter.value, is: count, "tasks that ran")
}

private func runDispatchChain(_ count: Int) {
    let counter = Counter()
    let queue = DispatchQueue(label: "benchmark")
    for _ in 0..<count { queue.async { counter.add() } }
    queue.sync {}
    check(counter.value, is: count, "blocks that ran")
}
