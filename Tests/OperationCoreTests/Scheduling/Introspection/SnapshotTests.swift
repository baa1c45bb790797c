// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("The snapshot of a queue", .nothingStaysAlive, .timeLimit(.minutes(3)))
struct SnapshotTests {
    @Test func `counts and lists of a snapshot show waiting, held, ready and running operations`() async throws {
        let queue = QueueManager("lists", width: 1)
        let running = HandDriven("running"), ready = HandDriven("ready")
        let waiting = HandDriven("waiting"), held = HandDriven("held")
        let clock = ManualClock()
        held.clock = clock
        held.startDelay = .seconds(1)
        waiting.addDependency(ready)
        try queue.add([running, ready, waiting, held])
        _ = await running.calls.events(atLeast: 1)
        let snapshot = queue.snapshot
        #expect(snapshot.entries(.running).map(\.name) == ["running"])
        #expect(snapshot.entries(.ready).map(\.name) == ["ready"])
        #expect(snapshot.entries(.waiting).map(\.name) == ["waiting"])
        #expect(snapshot.entries(.held).map(\.name) == ["held"])
        #expect(isMapping || snapshot.entries(.running).first?.operation === running)
        #expect(snapshot.counts == queue.counts)
        #expect(snapshot.counts.unended == 4)
        #expect(snapshot.width == 1)
        #expect(!snapshot.isSuspended)
        clock.advance(by: .seconds(1))
        #expect(queue.counts.ready == 2)
        queue.cancelAll()
        await queue.drained()
        #expect(queue.counts.cancelled == 4)
        #expect(queue.snapshot.entries.isEmpty)
    }

    @Test func `ends are counted by kind, including plain operations and closures`() async throws {
        let queue = QueueManager("ends")
        let failing = HandDriven("failing") { $0.finish(withError: .first) }
        let succeeding = HandDriven("succeeding") { $0.finish(withResult: 1) }
        let cancelled = HandDriven("cancelled")
        cancelled.cancel()
        try queue.add([failing, succeeding, cancelled])
        try queue.add(BlockOperation {})
        try queue.add {}
        await queue.drained()
        #expect(queue.counts.finished == 3)
        #expect(queue.counts.failed == 1)
        #expect(queue.counts.cancelled == 1)
        #expect(queue.counts.added == 5)
        #expect(queue.counts.unended == 0)
    }

    @Test func `a new entry in the slot of a finished entry is not equal to it`() async throws {
        let queue = QueueManager.suspended("identity")
        try queue.add(name: "first") {}
        let first = try #require(queue.snapshot.entries(.ready).first)
        await queue.resumeAndDrain()
        queue.isSuspended = true
        try queue.add(name: "second") {}
        let second = try #require(queue.snapshot.entries(.ready).first)
        #expect(first != second)
        #expect(second.name == "second")
        #expect(second.operation == nil)
        #expect(queue.snapshot.state(of: first) == nil)
        #expect(queue.snapshot.state(of: second) == .ready)
        await queue.resumeAndDrain()
    }
}

extension HandDriven {
    convenience init(_ name: String, main: @escaping @Sendable (HandDriven) -> Void) {
        self.init(name, hooks: Hooks(main: main))
    }
}
