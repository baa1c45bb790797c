// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Scenarios: cancellation", .timeLimit(.minutes(Rounds.minutes)))
struct CancellationScenarioTests {
    @Test("Scenario 6 (PSOperations#74): an operation that winds down keeps its slot and holds back its dependents")
    func windsDown() async throws {
        let order = EventRecorder<String>()
        let isRight = try await TestThread.run {
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = 1
            let (began, told, ended) = (Arrivals(1), Arrivals(1), Arrivals(3))
            let first = HeldWork(windsDown: true) { _ in began.arrive() }
            let dependent = QuickWork { _ in order.record("dependent") }
            let next = QuickWork { _ in order.record("next") }
            dependent.addDependency(first)
            first.callbackQueue = .global()
            first.cancellationHandler = { _ in told.arrive() }
            for operation in [first, dependent, next] as [ManagedOperation] {
                operation.completionBlock = { ended.arrive() }
                queue.addOperation(operation)
            }
            guard began.haveAllCome() else { return false }
            first.cancel()
            // The outcome is reported immediately, but the end waits for the body.
            guard told.haveAllCome(), first.outcome == .cancelled(.requested) else { return false }
            guard !first.isFinished, first.isExecuting, !dependent.isReady else { return false }
            order.record("body ends")
            first.finish(withResult: 1)
            return ended.haveAllCome() && first.outcome == .cancelled(.requested)
        }
        #expect(isRight)
        #expect(order.events.first == "body ends")
        #expect(order.count == 3)
    }

    @Test("Scenario 6 (ProcedureKit#705): canceled bodies that wind down never exceed the width of their queue")
    func windsDownWidth() async throws {
        let seed: UInt64 = 6
        let peak = try await TestThread.run {
            var random = SeededGenerator(seed: seed)
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = 2
            let (running, ended) = (Tally(), Arrivals(500))
            for _ in 0..<500 {
                let operation = HeldWork(windsDown: true) { work in
                    running.add()
                    DispatchQueue.global().async {
                        running.add(-1)
                        work.finish(withResult: 1)
                    }
                }
                operation.completionBlock = { ended.arrive() }
                queue.addOperation(operation)
                if random.chance(1, in: 2) { DispatchQueue.global().async { operation.cancel() } }
            }
            return ended.haveAllCome() ? running.peak : -1
        }
        #expect((1...2).contains(peak), "seed \(seed)")
    }

    @Test("Scenario 16 (ProcedureKit PR#423): if eight threads cancel and one finishes, all see the same outcome")
    func firstCause() async throws {
        NoticeHub.install()
        try await expectNoFailures { failures in
            let team = ThreadTeam(count: 9)
            for _ in 0..<Rounds.count(ci: 1_000, soak: 100_000) {
                let operation = HeldWork()
                let (seen, told) = (EventRecorder<CancellationCause?>(), Arrivals(1))
                operation.observe(on: .global()) { outcome in
                    seen.record(outcome.cancellationCause)
                    told.arrive()
                }
                operation.start()
                let cancels: [@Sendable () -> Void] = (0..<8).map { number in
                    {
                        operation.cancel(because: .requested("reason \(number)"))
                        seen.record(operation.cancellationCause)
                    }
                }
                team.run(cancels + [{ operation.finish(withResult: 1) }])
                guard told.haveAllCome(), let outcome = operation.outcome else { return failures += 1 }
                let expected: CancellationCause? = outcome.cancellationCause
                if (outcome.result == nil) != operation.isCancelled { failures += 1 }
                if operation.isCancelled, expected == nil { failures += 1 }
                if seen.events != Array(repeating: expected, count: 9) { failures += 1 }
            }
        }
    }

    @Test(
        "Scenario 21 (ProcedureKit#133): canceling a delay of an hour ends it immediately and leaves no timer",
        arguments: [false, true])
    func delay(inQueue: Bool) async throws {
        let isRight = try await TestThread.run {
            let clock = ManualClock()
            let bodies = Tally()
            let operation = HeldWork { _ in bodies.add() }
            let (started, ended) = (Arrivals(1), Arrivals(1))
            operation.clock = SchedulingClock(clock) { started.arrive() }
            operation.startDelay = .seconds(3_600)
            operation.completionBlock = { ended.arrive() }
            let queue = OperationQueue()
            inQueue ? queue.addOperation(operation) : operation.start()
            guard started.haveAllCome(), !operation.isFinished else { return false }
            operation.cancel()
            guard ended.haveAllCome(), operation.isFinished, queue.operationCount == 0 else { return false }
            // The thread that started the delay may not know yet what to cancel.
            let isClear = comesTrue { clock.pendingCount == 0 }
            clock.advance(by: .seconds(7_200))
            return isClear && bodies.value == 0 && operation.outcome == .cancelled(.requested)
        }
        #expect(isRight)
    }

    @Test(arguments: [false, true])
    func `scenario 22 (Alamofire#2340): cancel() inside the success handler has no effect`(inQueue: Bool) async throws {
        NoticeHub.install()
        let isRight = try await TestThread.run {
            let callbacks = DispatchQueue(label: "scenario 22")
            let (handled, ended, cancellations) = (Arrivals(1), Arrivals(1), Tally())
            let operation = QuickWork()
            operation.callbackQueue = callbacks
            operation.cancellationHandler = { _ in cancellations.add() }
            operation.completionBlock = { ended.arrive() }
            operation.successHandler = { _ in
                operation.cancel()
                handled.arrive()
            }
            let queue = OperationQueue()
            inQueue ? queue.addOperation(operation) : operation.start()
            guard handled.haveAllCome(), ended.haveAllCome() else { return false }
            callbacks.sync {}
            guard handled.missingCount == 0, ended.missingCount == 0, cancellations.value == 0 else { return false }
            return !operation.isCancelled && operation.outcome == .success(1) && operation.state == .finished
        }
        #expect(isRight)
    }
}
