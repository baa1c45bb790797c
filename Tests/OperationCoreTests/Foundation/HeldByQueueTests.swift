// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if canImport(FoundationNetworking)
    import Foundation
    import OperationCore
    import OperationTestKit
    import Testing

    // On Linux only: Apple's queues do not say what they hold.
    //
    // Foundation complains on standard output, and may crash, where an operation in a queue ends without having been
    // started by that queue. So each of these runs in a process of its own.
    @Suite("Foundation's queue: operations that it holds", .timeLimit(.minutes(Rounds.minutes)))
    struct HeldByQueueTests {
        @Test("L5: an operation that waits in a queue is not started by another thread that needs it")
        func neededByThread() async throws {
            let result = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                try await TestThread.run {
                    for _ in 0..<100 { #expect(queueAloneRuns(whenNeeded: { $0.startIfNeeded() })) }
                }
            }
            #expect(!hasComplaint(result))
        }

        @Test("L5: an operation that waits in a queue is not started by an operation of another queue that needs it")
        func neededByOperation() async throws {
            let result = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                try await TestThread.run {
                    #expect(queueAloneRuns(whenNeeded: { operation in inAnotherQueue { operation.startIfNeeded() } }))
                }
            }
            #expect(!hasComplaint(result))
        }

        @Test("L5: an operation that waits in a queue is not started by its mapped operation in another queue")
        func neededByMappedOperation() async throws {
            let result = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                try await TestThread.run {
                    #expect(
                        queueAloneRuns(whenNeeded: { operation in
                            let mapped = operation.mapResult { $0 + 1 }
                            inAnotherQueue { mapped.start() }
                        }))
                }
            }
            #expect(!hasComplaint(result))
        }

        @Test("L5: startAndWait() right after addOperation() leaves the start to the queue")
        func neededDuringStart() async throws {
            let result = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                try await TestThread.run {
                    let queue = OperationQueue()
                    var failures = 0
                    for _ in 0..<Rounds.count(ci: 2_000, soak: 100_000) {
                        let runner = Runner()
                        let operation = QuickWork { _ in runner.note() }
                        queue.addOperation(operation)
                        if (try? operation.startAndWait()) != 1 || runner.queue !== queue { failures += 1 }
                    }
                    #expect(failures == 0)
                    queue.waitUntilAllOperationsAreFinished()
                }
            }
            #expect(!hasComplaint(result))
        }
    }

    /// Which queue ran the body.
    private final class Runner: Sendable {
        private let noted = Locked(nil as OperationQueue?)
        var queue: OperationQueue? { noted.withLock { $0 } }

        func note() {
            let current = OperationQueue.current
            noted.withLock { $0 = current }
        }
    }

    /// Whether an operation in a suspended queue is still waiting when `need` was called, and then run by that queue.
    @available(*, noasync)
    private func queueAloneRuns(whenNeeded need: (QuickWork) -> Void) -> Bool {
        let queue = OperationQueue()
        queue.isSuspended = true
        let runner = Runner()
        let ended = Arrivals(1)
        let operation = QuickWork { _ in runner.note() }
        operation.completionBlock = { ended.arrive() }
        queue.addOperation(operation)
        need(operation)
        let isWaiting = operation.state == .notStarted
        queue.isSuspended = false
        return ended.haveAllCome() && isWaiting && runner.queue === queue
    }

    /// Runs `body` inside an operation of a queue of its own, and waits for it.
    @available(*, noasync)
    private func inAnotherQueue(_ body: @escaping @Sendable () -> Void) {
        let queue = OperationQueue()
        queue.addOperation(body)
        queue.waitUntilAllOperationsAreFinished()
    }

    private func hasComplaint(_ result: ExitTest.Result?) -> Bool {
        String(decoding: result?.standardOutputContent ?? [], as: UTF8.self).contains("***")
    }
#endif
