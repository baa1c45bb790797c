// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationExporters
import OperationTestKit
import Testing

/// Makes the pictures of `Docs/Guides/Queues.md`: `OPERATIONKIT_PICTURES=folder Scripts/test --filter PictureSample`.
@Suite(
    "Pictures for the guide", .timeLimit(.minutes(3)),
    .enabled(if: ProcessInfo.processInfo.environment["OPERATIONKIT_PICTURES"] != nil))
struct PictureSampleTests {
    @Test func `the graph of a running queue and the trace of its finished work are written to files`() async throws {
        let folder = URL(fileURLWithPath: ProcessInfo.processInfo.environment["OPERATIONKIT_PICTURES"] ?? ".")
        let queue = QueueManager("gallery", width: 2)
        let gate = Gate()
        let operations = Self.gallery(gate)
        try queue.add(Array(operations.dropLast()))
        // Both reads have ended, and the decoding operations wait at the gate.
        try await TestThread.run { while queue.counts.finished < 2 { sched_yield() } }
        try await TestThread.run { while queue.counts.running < 2 { sched_yield() } }
        let graph = queue.graph()
        try graph.dot.write(to: folder.appending(path: "graph.dot"), atomically: true, encoding: .utf8)
        try graph.mermaid.write(to: folder.appending(path: "graph.mmd"), atomically: true, encoding: .utf8)
        gate.open()
        try await queue.addAndDrain(Array(operations.suffix(1)))
        queue.recording = QueueRecording()
        try await queue.addAndDrain(Self.gallery(gate))
        try queue.record.chromeTrace().write(to: folder.appending(path: "trace.json"))
    }

    private static func gallery(_ gate: Gate) -> [ManagedOperation] {
        func step(_ name: String, _ weight: Int, after others: [ManagedOperation] = []) -> ManagedOperation {
            let operation = ClosureOperation<Int, Never> {
                if weight < 0 { gate.pass() }
                return churn(abs(weight))
            }.named(name)
            operation.callbackQueue = .global()
            operation.successHandler = { _ in }
            for other in others { operation.addDependency(other) }
            return operation
        }
        let reads = [step("read a.jpg", 2), step("read b.jpg", 3)]
        let decodes = [step("decode a", -6, after: [reads[0]]), step("decode b", -4, after: [reads[1]])]
        let scales = [step("scale a", 3, after: [decodes[0]]), step("scale b", 5, after: [decodes[1]])]
        let sheet = step("contact sheet", 4, after: scales)
        let index = step("index", 2, after: reads)
        let publish = step("publish", 1, after: [sheet])
        return reads + decodes + scales + [sheet, index, publish]
    }
}

/// Uses the processor for a while.
private func churn(_ weight: Int) -> Int {
    var random = SeededGenerator(seed: 1)
    var sum = 0
    for _ in 0..<weight * 200_000 { sum &+= Int(truncatingIfNeeded: random.next()) }
    return sum
}

extension Gate {
    /// Blocks a body on purpose.
    fileprivate func pass() { wait() }
}
