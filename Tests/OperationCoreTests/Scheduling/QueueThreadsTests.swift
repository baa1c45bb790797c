// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// The number of threads that work for a queue.
@Suite(.timeLimit(.minutes(Rounds.minutes)))
struct QueueThreadsTests {
    @Test func `an operation that ended while its body blocks does not hold up the queue`() async throws {
        let queue = QueueManager("ended", width: 1), go = Gate()
        let stuck = HandDriven("stuck", hooks: .init(main: { _ in go.wait() }))
        let next = (0..<3).map { number in ClosureOperation { number } }
        try queue.add([stuck])
        try queue.add(next)
        _ = await stuck.calls.events(atLeast: 1)
        stuck.cancel()
        await queue.drained()
        #expect(next.allSatisfy { $0.outcome != nil })
        go.open()
    }

    /// Checks the threads every 4 ms for a given time, with enough work for more threads than exist.
    private struct Watch {
        var threads: QueueThreads
        private var now: UInt64 = 0
        private var usedTime: UInt64 = 0
        private var starts: UInt64 = 0

        init(width: Int? = nil, cores: Int = 2) {
            threads = QueueThreads(width: width, cores: cores)
            while threads.join() {}
            _ = threads.beginWatch()
        }

        /// - Parameters:
        /// - busy: The number of cores that the process keeps busy.
        /// - startingEach: The number of checks after which an operation starts.
        mutating func pass(milliseconds: Int, busy: Double, startingEach: Int = .max) {
            for count in 1...milliseconds / 4 {
                now += 4_000_000
                usedTime += UInt64(4_000_000 * busy)
                if count % startingEach == 0 { starts += 1 }
                _ = threads.look(.init(starts: starts, usedTime: usedTime, now: now), canStart: true)
                // Surplus threads leave after they have run their operation.
                if count % startingEach == 0, !threads.mayContinue { threads.leave() }
            }
        }
    }

    @Test func `a queue is blocked after its maximum number of threads has blocked for several seconds`() {
        var watch = Watch()
        watch.pass(milliseconds: 4_000, busy: 0)
        #expect(watch.threads.workers == QueueThreads.mostThreads && !watch.threads.isBlocked)
        watch.pass(milliseconds: 2_000, busy: 0)
        #expect(watch.threads.isBlocked)
        watch.pass(milliseconds: 8, busy: 0, startingEach: 1)
        #expect(!watch.threads.isBlocked)
        var computing = Watch()
        computing.pass(milliseconds: 60_000, busy: 2)
        #expect(!computing.threads.isBlocked)
    }

    @Test(arguments: [1, 2, 8, 64])
    func `bodies that compute get at most one additional thread`(cores: Int) {
        var watch = Watch(cores: cores)
        watch.pass(milliseconds: 200, busy: Double(cores))
        #expect(watch.threads.workers == cores)
        watch.pass(milliseconds: 2_000, busy: Double(cores) * 0.95, startingEach: 30)
        #expect(watch.threads.workers <= cores + 1)
    }

    @Test func `blocking bodies get more threads within milliseconds, even next to bodies that compute`() {
        var watch = Watch()
        watch.pass(milliseconds: 40, busy: 0)
        #expect(watch.threads.workers == 64)
        watch = Watch()
        watch.pass(milliseconds: 20, busy: 1)
        #expect(watch.threads.workers > 2)
        watch = Watch(width: 1)
        watch.pass(milliseconds: 20, busy: 0)
        #expect(watch.threads.workers > 1)
    }

    @Test func `while bodies compute, the queue adds more threads slowly`() {
        var watch = Watch()
        watch.pass(milliseconds: 1_000, busy: 2)
        #expect((3...4).contains(watch.threads.workers))
        watch.pass(milliseconds: 10_000, busy: 2)
        #expect((6...8).contains(watch.threads.workers))
        // The computing bodies have ended.
        watch.pass(milliseconds: 40, busy: 0)
        #expect(watch.threads.workers == 64)
    }

    @Test func `threads that were added for blocking bodies leave once the cores are busy`() {
        var watch = Watch()
        watch.pass(milliseconds: 40, busy: 0)
        #expect(watch.threads.workers == 64)
        watch.pass(milliseconds: 1_000, busy: 2, startingEach: 1)
        #expect(watch.threads.workers == 2)
    }
}
