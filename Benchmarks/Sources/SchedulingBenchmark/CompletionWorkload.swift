// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import OperationCore

/// Returns the time for asynchronous operations that all run at the same time, and that another thread finishes in
/// reverse order.
func completionFigures(_ scale: Scale) -> [Figure] {
    [
        .speedup(
            "reverse completion: OperationQueue", unit: "ns",
            compare(scale.sized(4_000, rounds: 5), ours: runReverseCompletion, peer: runPeerReverseCompletion))
    ]
}

private final class OpenOperation: AsyncOperation<Int, Never>, @unchecked Sendable {
    // Sendable: the gate is Sendable.

    private let gate: Gate

    init(_ gate: Gate) {
        self.gate = gate
    }

    override func main() { gate.pass() }
}

/// The minimum implementation of an asynchronous subclass of `Foundation.Operation`.
private final class PeerOpenOperation: Operation, @unchecked Sendable {
    // Sendable: only one thread at a time changes the flags in this benchmark.

    private let gate: Gate
    private var isRunning = false
    private var isDone = false

    init(_ gate: Gate) {
        self.gate = gate
    }

    override var isAsynchronous: Bool { true }
    override var isExecuting: Bool { isRunning }
    override var isFinished: Bool { isDone }

    override func start() {
        willChangeValue(forKey: "isExecuting")
        isRunning = true
        didChangeValue(forKey: "isExecuting")
        gate.pass()
    }

    func finish() {
        willChangeValue(forKey: "isExecuting")
        willChangeValue(forKey: "isFinished")
        isRunning = false
        isDone = true
        didChangeValue(forKey: "isExecuting")
        didChangeValue(forKey: "isFinished")
    }
}

/// A gate that opens when a number of operations have called `pass()`.
private final class Gate: Sendable {
    private let counter = Counter()
    private let count: Int
    private let opening = DispatchSemaphore(value: 0)

    init(_ count: Int) {
        self.count = count
    }

    func pass() {
        if counter.add() == count { opening.signal() }
    }

    func waitUntilOpen() { opening.wait() }
}

func runReverseCompletion(_ count: Int) {
    let gate = Gate(count)
    let operations = (0..<count).map { _ in OpenOperation(gate) }
    withQueue(width: nil) { queue in
        try queue.add(operations)
        gate.waitUntilOpen()
        for (number, operation) in operations.enumerated().reversed() { operation.finish(withResult: number) }
    }
    check(operations.count { $0.isFinished }, is: count, "operations that finished")
}

private func runPeerReverseCompletion(_ count: Int) {
    let gate = Gate(count)
    let operations = (0..<count).map { _ in PeerOpenOperation(gate) }
    withPeerQueue(width: nil) { queue in
        queue.addOperations(operations, waitUntilFinished: false)
        gate.waitUntilOpen()
        for operation in operations.reversed() { operation.finish() }
    }
    check(operations.count { $0.isFinished }, is: count, "Foundation's operations that finished")
}
