// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if canImport(FoundationNetworking)
    import Foundation
    import OperationCore
    import OperationTestKit
    import Testing

    // These tests run only on Linux, because queues on Apple platforms do not reveal their operations.
    //
    // Foundation prints a complaint to standard output, and may crash, if an operation in a queue ends without being
    // started by that queue. So each test runs in its own process.
    @Suite("Foundation's queue: operations that wait in it", .timeLimit(.minutes(Rounds.minutes)))
    struct HeldByQueueTests {
        @Test func `L5: startIfNeeded() does not start an operation that waits in a queue`() async throws {
            let result = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                try await TestThread.run {
                    for _ in 0..<100 { #expect(queueAloneRuns(whenNeeded: { $0.startIfNeeded() })) }
                }
            }
            #expect(!hasComplaint(result))
        }

        @Test
        func `L5: startIfNeeded() in another queue does not start an operation that waits in a queue`() async throws {
            let result = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                try await TestThread.run {
                    #expect(queueAloneRuns(whenNeeded: { operation in inAnotherQueue { operation.startIfNeeded() } }))
                }
            }
            #expect(!hasComplaint(result))
        }

        @Test func `L5: start() in another queue does not start an operation that waits in a queue`() async throws {
            let result = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                try await TestThread.run {
                    let notices = NoticeHub.recorder(for: "Notice: held")
                    #expect(
                        queueAloneRuns(whenNeeded: { operation in
                            operation.name = "Notice: held"
                            inAnotherQueue { operation.start() }
                        }))
                    #expect(notices.events.map(\.kind) == [.startedTwice])
                }
            }
            #expect(!hasComplaint(result))
        }

        @Test func `L5: start() in a block of a serial queue does not start its next operations`() async throws {
            let result = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                try await TestThread.run {
                    let queue = OperationQueue()
                    queue.maxConcurrentOperationCount = 1
                    queue.isSuspended = true
                    let bodies = Locked<[String]>([])
                    let operation = QuickWork { _ in bodies.withLock { $0.append("operation") } }
                    let mapped = QuickWork { _ in bodies.withLock { $0.append("mapped") } }.mapResult { $0 }
                    queue.addOperation {
                        operation.start()
                        mapped.start()
                        bodies.withLock { $0.append("first") }
                    }
                    queue.addOperation(operation)
                    queue.addOperation(mapped as Operation)
                    queue.addOperation { bodies.withLock { $0.append("last") } }
                    queue.isSuspended = false
                    queue.waitUntilAllOperationsAreFinished()
                    #expect(bodies.withLock { $0 } == ["first", "operation", "mapped", "last"])
                }
            }
            #expect(!hasComplaint(result))
        }

        @Test
        func `L5: a mapped operation does not start its original while the original waits in a queue`() async throws {
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

        @Test func `L5: an operation of a QueueManager may end while a queue of Foundation holds it`() async throws {
            let result = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                for _ in 0..<100 {
                    let ours = QueueManager("ours"), theirs = OperationQueue(), operation = QuickWork()
                    ours.isSuspended = true
                    theirs.isSuspended = true
                    try ours.add(operation)
                    theirs.addOperation(operation)
                    ours.isSuspended = false
                    await operation.ended()
                    theirs.isSuspended = false
                    try await TestThread.run { theirs.waitUntilAllOperationsAreFinished() }
                }
            }
            #expect(!hasComplaint(result))
        }

        @Test func `L5: startAndWait() right after addOperation() leaves the start to the queue`() async throws {
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

    /// Records the queue that ran the body.
    private final class Runner: Sendable {
        private let noted = Locked(nil as OperationQueue?)
        var queue: OperationQueue? { noted.withLock { $0 } }

        func note() {
            let current = OperationQueue.current
            noted.withLock { $0 = current }
        }
    }

    /// Returns whether an operation in a suspended queue still waits after `need`, and is then run by that queue.
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

    /// Runs `body` inside an operation of a new queue, and waits for its end.
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
