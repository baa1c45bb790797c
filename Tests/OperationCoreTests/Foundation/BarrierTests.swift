// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Foundation's queue: barriers and completion blocks", .timeLimit(.minutes(Rounds.minutes)))
struct BarrierTests {
    @Test func `L8: a canceled operation added behind a waiting barrier does not block the queue`() async throws {
        let order = EventRecorder<String>()
        let isDone = try await TestThread.run {
            let queue = OperationQueue()
            let began = Arrivals(1)
            let before = HeldWork { _ in began.arrive() }
            let waiting = HeldWork()
            let cancelled = HeldWork { _ in order.record("cancelled") }
            let cancelledWaiting = HeldWork { _ in order.record("cancelled") }
            cancelledWaiting.addDependency(waiting)
            let free = QuickWork { _ in order.record("free") }
            let dependent = QuickWork { _ in order.record("dependent") }
            dependent.addDependency(free)
            let cancelledLater = HeldWork { _ in order.record("cancelled") }
            let behind: [ManagedOperation] = [cancelled, cancelledWaiting, free, dependent, cancelledLater]
            let ended = Arrivals(behind.count)
            for operation in behind { operation.completionBlock = { ended.arrive() } }
            queue.addOperation(before)
            guard began.haveAllCome() else { return false }
            queue.addBarrierBlock { order.record("barrier") }
            cancelled.cancel()
            cancelledWaiting.cancel()
            guard Arrivals.returns({ for operation in behind { queue.addOperation(operation) } }) else { return false }
            cancelledLater.cancel()
            before.finish(withResult: 1)
            guard ended.haveAllCome() else { return false }
            return queue.operationCount == 0
        }
        #expect(isDone)
        #expect(order.events == ["barrier", "free", "dependent"])
    }

    @Test func `L8: the queue drains when operations are canceled while a barrier is added`() async throws {
        NoticeHub.install()
        let failures = try await TestThread.run {
            let team = ThreadTeam(count: 3)
            let queue = OperationQueue()
            for _ in 0..<Rounds.count(ci: 500, soak: 50_000) {
                let (ended, barriers) = (Arrivals(3), Arrivals(1))
                let operations = (0..<3).map { _ in QuickWork() }
                for operation in operations { operation.completionBlock = { ended.arrive() } }
                operations[2].addDependency(operations[1])
                let isDone = Arrivals.returns {
                    team.run([
                        { queue.addBarrierBlock { barriers.arrive() } },
                        { for operation in operations { queue.addOperation(operation) } },
                        { for operation in operations { operation.cancel() } },
                    ])
                }
                guard isDone, ended.haveAllCome(), barriers.haveAllCome() else { return 1 }
            }
            queue.waitUntilAllOperationsAreFinished()
            return queue.operationCount
        }
        #expect(failures == 0)
    }

    @Test(
        "L9: a completion block and the operation that it captures are released after the end",
        arguments: [false, true], [false, true])
    func completionBlockWithCycle(inQueue: Bool, cancelled: Bool) async throws {
        let (ran, freed) = (Tally(), Arrivals(2))
        let isFreed = try await TestThread.run {
            let queue = OperationQueue()
            autoreleasing {
                let held = HeldWork(trace: Trace(freed)) { $0.finish(withResult: 1) }
                let quick = QuickWork(trace: Trace(freed))
                held.completionBlock = { ran.add(held.isFinished ? 1 : 100) }
                quick.completionBlock = { ran.add(quick.isFinished ? 1 : 100) }
                for operation in [held, quick] as [ManagedOperation] {
                    if cancelled { operation.cancel() }
                    inQueue ? queue.addOperation(operation) : operation.start()
                }
            }
            return freed.haveAllCome()
        }
        #expect(isFreed)
        #expect(ran.value == 2)
    }

    @Test func `L9: a completion block set after the end runs once and is released`() async throws {
        let (ran, freed) = (Arrivals(1), Arrivals(1))
        let isFreed = try await TestThread.run {
            autoreleasing {
                let operation = QuickWork(trace: Trace(freed))
                operation.start()
                operation.completionBlock = {
                    _ = operation
                    ran.arrive()
                }
            }
            return ran.haveAllCome() && freed.haveAllCome()
        }
        #expect(isFreed)
        #expect(ran.missingCount == 0)
    }
}
