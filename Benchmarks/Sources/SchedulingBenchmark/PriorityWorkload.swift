// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Dispatch
import Foundation
import OperationCore
import Synchronization

/// Returns the times for operations with different priorities, and for a few urgent operations among many others.
func priorityFigures(_ scale: Scale) -> [Figure] {
    let count = scale.sized(100_000, rounds: 1).count
    let ours = (0..<(scale.isSmoke ? 1 : 5)).map { _ in floodDelays(count) }
    let peer = peerFloodDelays(count)
    let body = Flood.bodyLength
    let p99 = median(ours.map { $0.percentile(99) })
    return [
        .speedup(
            "mixed priorities: OperationQueue", unit: "ns",
            compare(scale.sized(10_000, rounds: 5), ours: runMixed, peer: runPeerMixed)),
        .ratio(
            "flood: p99 delay of an urgent one ÷ a body's length", unit: "µs",
            Pair(ours: p99, peer: body, ratio: p99 / body), target: .atMost(10)),
        .plain("flood: median delay", unit: "µs", median(ours.map { $0.percentile(50) })),
        .plain("flood: longest delay", unit: "µs", median(ours.map { $0.percentile(100) })),
        .plain("flood: p99 delay in an OperationQueue", unit: "µs", peer.percentile(99)),
    ]
}

private let priorities: [Operation.QueuePriority] = [.normal, .low, .veryHigh, .veryLow, .high]

func runMixed(_ count: Int) {
    let counter = Counter()
    withQueue { queue in
        for number in 0..<count {
            let operation = CountingOperation(counter)
            operation.queuePriority = priorities[number % priorities.count]
            try queue.add(operation)
        }
    }
    check(counter.value, is: count, "operations that ran")
}

private func runPeerMixed(_ count: Int) {
    let counter = Counter()
    withPeerQueue { queue in
        for number in 0..<count {
            let operation = PeerOperation(counter)
            operation.queuePriority = priorities[number % priorities.count]
            queue.addOperation(operation)
        }
    }
    check(counter.value, is: count, "Foundation's operations that ran")
}

/// Many operations with low priority, and the delays after which urgent operations began.
private final class Flood: Sendable {
    /// The duration of the body of an operation with low priority, in microseconds.
    static let bodyLength = 20.0

    let counter = Counter()
    private let delays = Mutex<[Double]>([])

    /// Runs the body of an operation with low priority.
    func work() {
        let end = now() + Self.bodyLength
        while now() < end {}
        counter.add()
    }

    /// Records the delay of an urgent operation that was added at the given time.
    func note(_ added: Double) {
        let delay = now() - added
        delays.withLock { $0.append(delay) }
    }

    /// Adds an urgent operation each millisecond until `count` others have run, and returns the number of urgent
    /// operations.
    func addUrgent(until count: Int, _ add: (_ added: Double) -> Void) -> Int {
        var added = 0
        while counter.value < count {
            add(now())
            added += 1
            usleep(1_000)
        }
        return added
    }

    /// Returns the delays in microseconds, and checks their number.
    func delays(_ count: Int) -> [Double] {
        delays.withLock { delays in
            check(delays.count, is: count, "urgent operations that ran")
            return delays.sorted()
        }
    }

    private func now() -> Double { Double(DispatchTime.now().uptimeNanoseconds) / 1_000 }
}

extension [Double] {
    /// Returns a percentile of a sorted list.
    fileprivate func percentile(_ percent: Int) -> Double { self[(count - 1) * percent / 100] }
}

private final class FloodOperation: SyncOperation<Void, Never>, @unchecked Sendable {
    // Sendable: the class has no mutable state.

    private let body: @Sendable () -> Void

    init(_ priority: QueuePriority, _ body: @escaping @Sendable () -> Void) {
        self.body = body
        super.init()
        queuePriority = priority
    }

    override func main() {
        body()
        finish(withResult: ())
    }
}

private func floodDelays(_ count: Int) -> [Double] {
    let flood = Flood()
    var urgent = 0
    withQueue(width: 2) { queue in
        try queue.add((0..<count).map { _ in FloodOperation(.low) { flood.work() } })
        urgent = flood.addUrgent(until: count) { added in
            must { try queue.add(FloodOperation(.veryHigh) { flood.note(added) }) }
        }
    }
    return flood.delays(urgent)
}

private func peerFloodDelays(_ count: Int) -> [Double] {
    let flood = Flood()
    var urgent = 0
    withPeerQueue(width: 2) { queue in
        let many = (0..<count).map { _ in
            let operation = BlockOperation { flood.work() }
            operation.queuePriority = .low
            return operation
        }
        queue.addOperations(many, waitUntilFinished: false)
        urgent = flood.addUrgent(until: count) { added in
            let operation = BlockOperation { flood.note(added) }
            operation.queuePriority = .veryHigh
            queue.addOperation(operation)
        }
    }
    return flood.delays(urgent)
}
