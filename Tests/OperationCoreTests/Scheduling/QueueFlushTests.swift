// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Changes that a thread collects for its queue while it ends an operation, and flushes before user code runs.
@Suite(.nothingStaysAlive, .timeLimit(.minutes(Rounds.minutes)))
struct QueueFlushTests {
    private let workers = ManualWorkers()

    /// An operation that fails and two that depend on it, the second with a rule.
    private func makeRow(_ prepare: (SyncProbe) -> Void) throws -> (QueueManager, [SyncProbe]) {
        let queue = workers.makeQueue("row", width: 1)
        let failing = SyncProbe("failing") { $0.finish(withError: .first) }
        let waiting = SyncProbe("waiting") { $0.finish(withResult: 1) }
        let ruled = SyncProbe("ruled") { $0.finish(withResult: 1) }
        prepare(waiting)
        waiting.addDependency(failing)
        try ruled.depend(on: failing, otherwise: .fail { _ in .second })
        try queue.add([failing, waiting, ruled])
        return (queue, [failing, waiting, ruled])
    }

    @Test func `an operation that is admitted while the rule of another one runs is not lost`() throws {
        let (queue, row) = try makeRow { $0.categories = [OperationCategory("free")] }
        workers.runAll()
        #expect(row[1].outcome == .success(1) && row[2].isFinished)
        #expect(queue.engine.operations.isEmpty)
    }

    @Test func `an operation dropped by its throttle while another rule runs ends exactly once`() throws {
        let clock = ManualClock()
        func throttle(_ operation: SyncProbe) {
            operation.clock = clock
            operation.throttle = .init(key: "flush", interval: .seconds(60), early: .drop)
        }
        let first = SyncProbe("first") { $0.finish(withResult: 1) }
        throttle(first)
        first.start()
        let (queue, row) = try makeRow(throttle)
        let mapped = row[1].mapResult { $0 + 1 }
        mapped.startAndKeepAlive()
        workers.runAll()
        #expect(row[1].cancellationCause?.code == .throttled && row[1].isFinished && mapped.isFinished)
        #expect(queue.engine.operations.isEmpty && queue.counts.failed + queue.counts.cancelled == 3)
        for number in 0..<3 { try queue.add(SyncProbe("\(number)") { $0.finish(withResult: number) }) }
        workers.runAll()
        #expect(queue.counts.finished == 3)
    }
}
