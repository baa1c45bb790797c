// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Plain operations in a `QueueManager`.
@Suite(.nothingStaysAlive, .timeLimit(.minutes(3)))
struct QueueForeignTests {
    /// An asynchronous plain operation as users write it.
    private final class Slow: Operation, @unchecked Sendable {
        private let flags = Locked((executing: false, finished: false))
        let began = Gate()

        override var isAsynchronous: Bool { true }
        override var isExecuting: Bool { flags.withLock { $0.executing } }
        override var isFinished: Bool { flags.withLock { $0.finished } }

        override func start() {
            flags.withLock { $0.executing = true }
            began.open()
        }

        func end() {
            willChangeValue(forKey: "isFinished")
            flags.withLock { $0 = (false, true) }
            didChangeValue(forKey: "isFinished")
        }
    }

    /// A plain operation that overrides `isReady`.
    private final class Moody: Operation, @unchecked Sendable {
        let isWilling = Locked(false)
        override var isReady: Bool { super.isReady && isWilling.withLock { $0 } }
    }

    @Test func `plain operations run once within the width and take a slot until they end`() async throws {
        let queue = QueueManager("foreign", width: 2), running = Tally()
        for _ in 0..<100 { try queue.add(BlockOperation { running.during {} }) }
        await queue.drained()
        #expect(running.runs == 100)
        #expect(running.peak <= 2)
        let slow = (0..<3).map { _ in Slow() }
        for operation in slow { try queue.add(operation) }
        await slow[1].began.passage()
        #expect(!slow[2].began.isOpen)
        slow[0].end()
        await slow[2].began.passage()
        for operation in slow[1...] { operation.end() }
        await queue.drained()
    }

    @Test func `dependencies work between plain and own operations in both kinds of queues`() async throws {
        let ours = QueueManager("ours", width: 2), theirs = OperationQueue(), order = EventRecorder<Int>()
        let first = BlockOperation { order.record(1) }
        let second = SyncProbe { operation in
            order.record(2)
            operation.finish(withResult: 0)
        }
        let third = BlockOperation { order.record(3) }
        let fourth = BlockOperation { order.record(4) }
        let fifth = SyncProbe { operation in
            order.record(5)
            operation.finish(withResult: 0)
        }
        try second.depend(on: first, otherwise: .cancel)
        third.addDependency(second)
        fourth.addDependency(third)
        try fifth.depend(on: fourth, otherwise: .cancel)
        try ours.add(fifth)
        try ours.add(fourth)
        theirs.addOperation(third)
        try ours.add(second)
        try ours.add(first)
        await ours.drained()
        #expect(order.events == [1, 2, 3, 4, 5])
    }

    @Test func `the queue checks isReady again for a plain operation that was not ready`() async throws {
        let queue = QueueManager(), moody = Moody(), barrier = Gate()
        try queue.add(moody)
        try queue.add { barrier.open() }
        await barrier.passage()
        #expect(!moody.isFinished)
        moody.isWilling.withLock { $0 = true }
        await queue.drained()
        #expect(moody.isFinished)
    }

    @Test func `a plain operation that is canceled while it waits ends without its body`() async throws {
        let queue = QueueManager(), never = BlockOperation {}, ran = Gate()
        let operation = BlockOperation { ran.open() }
        operation.addDependency(never)
        try queue.add(operation)
        operation.cancel()
        await queue.drained()
        #expect(operation.isFinished)
        #expect(!ran.isOpen)
    }

    @Test func `a plain operation that is queued, executing or finished is rejected`() async throws {
        let queue = QueueManager("one"), theirs = OperationQueue()
        func code(_ operation: Operation) -> OperationSetupError.Code? {
            thrown { () throws(OperationSetupError) in try queue.add(operation) }?.code
        }
        let ended = BlockOperation {}
        ended.start()
        #expect(code(ended) == .alreadyFinished)
        let running = Slow()
        running.start()
        #expect(code(running) == .alreadyStarted)
        theirs.isSuspended = true
        let held = BlockOperation {}
        theirs.addOperation(held)
        #expect(code(held) == .alreadyAdded)
        theirs.isSuspended = false
        queue.isSuspended = true
        let twice = BlockOperation {}
        #expect(code(twice) == nil)
        #expect(code(twice) == .alreadyAdded)
        await queue.resumeAndDrain()
        #expect(twice.isFinished)
    }

    @Test func `plain operations are released when they end`() async throws {
        let census = LiveObjects(), queue = QueueManager()
        for _ in 0..<50 { try queue.add(census.track(BlockOperation {})) }
        await queue.drained()
        #expect(try await TestThread.run { census.countAtRest() } == 0)
    }

    @Test(arguments: [1, 2]) func `a chain of plain operations runs without the polling timer`(
        _ width: Int
    ) async throws {
        let queue = QueueManager("chain", width: width), order = EventRecorder<Int>()
        queue.engine.stopPolling()
        queue.isSuspended = true
        var last: Operation?
        for number in 0..<400 {
            let next = BlockOperation { order.record(number) }
            if let last { next.addDependency(last) }
            try queue.add(next)
            last = next
        }
        await queue.resumeAndDrain()
        #expect(order.events == Array(0..<400))
    }

    @Test func `a graph of plain and own operations runs without the polling timer`() async throws {
        let queue = QueueManager("graph", width: 2), count = Tally()
        queue.engine.stopPolling()
        queue.isSuspended = true
        var layer: [Operation] = []
        for number in 0..<60 {
            let next: [Operation] = (0..<5).map { place in
                (number + place) % 3 == 0
                    ? ClosureOperation { count.add() } as Operation : BlockOperation { count.add() }
            }
            for operation in next {
                for other in layer {
                    if let own = other as? ManagedOperation {
                        operation.addDependency(own)
                    } else {
                        operation.addDependency(other)
                    }
                }
                try queue.add(operation)
            }
            layer = next
        }
        await queue.resumeAndDrain()
        #expect(count.value == 300)
    }

    /// Counts the calls of `isReady`.
    private final class Asked: Operation, @unchecked Sendable {
        let count: EventRecorder<Int>

        init(_ count: EventRecorder<Int>) { self.count = count }

        override var isReady: Bool {
            count.record(0)
            return super.isReady
        }
    }

    @Test func `a queue polls few of many waiting plain operations at a time, but all in turn`() async throws {
        let queue = QueueManager("many"), never = BlockOperation {}, count = EventRecorder<Int>(), moody = Moody()
        let waiting = (0..<3_000).map { _ in Asked(count) }
        for operation in waiting {
            operation.addDependency(never)
            try queue.add(operation)
        }
        // The timer also polls operations, so the smallest count is used.
        let least = (0..<10).map { _ in
            let before = count.count
            queue.engine.askPlain()
            return count.count - before
        }.min()
        #expect((least ?? .max) <= 1_500)
        // An operation without dependencies does not wait behind operations with dependencies.
        try queue.add(moody)
        moody.isWilling.withLock { $0 = true }
        queue.engine.askPlain()
        while !moody.isFinished { await Task.yield() }
        // An operation that is canceled without a notification is found in its turn.
        waiting[2_999].cancel()
        while !waiting[2_999].isFinished {
            queue.engine.askPlain()
            await Task.yield()
        }
        queue.cancelAll()
        await queue.drained()
        #expect(waiting.allSatisfy { $0.isFinished })
    }
}
