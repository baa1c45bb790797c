// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Scenarios: cancellation in every state", .timeLimit(.minutes(Rounds.minutes)))
struct CancelAnywhereTests {
    /// The state of an operation when it is canceled.
    enum Moment: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case beforeAdding = "before it is added", inSuspendedQueue = "in a suspended queue"
        case behindDependency = "behind a dependency", inDelay = "in its delay", executing, suspended
        case insideMain = "inside its main", ended
        var testDescription: String { rawValue }
    }

    @Test(
        "Scenario 7 (Operative#35): an operation canceled at any moment ends, and its queue drains",
        arguments: Moment.allCases, [false, true])
    func cancelled(moment: Moment, windsDown: Bool) async throws {
        NoticeHub.install()
        let isRight = try await TestThread.run {
            let queue = OperationQueue()
            queue.isSuspended = true
            let (began, ended, told) = (Arrivals(1), Arrivals(1), Arrivals(1))
            let operation = HeldWork(windsDown: windsDown) { work in
                if moment == .suspended { work.suspend() }
                if moment == .insideMain { work.cancel() }
                if moment == .ended { work.finish(withResult: 1) }
                began.arrive()
            }
            let clock = ManualClock()
            if moment == .inDelay {
                operation.clock = SchedulingClock(clock) { began.arrive() }
                operation.startDelay = .seconds(1)
            }
            if moment == .behindDependency { operation.addDependency(HeldWork()) }
            operation.callbackQueue = .global()
            operation.cancellationHandler = { _ in told.arrive() }
            operation.completionBlock = { ended.arrive() }
            if moment == .beforeAdding { operation.cancel() }
            queue.addOperation(operation)
            if moment == .inSuspendedQueue { operation.cancel() }
            queue.isSuspended = false
            let isToBegin = [.executing, .suspended, .insideMain, .ended].contains(moment)
            if isToBegin || moment == .inDelay { guard began.haveAllCome() else { return false } }
            if moment == .ended { guard ended.haveAllCome() else { return false } }
            operation.cancel()
            // A body that winds down does so once it knows of the cancellation.
            if isToBegin, windsDown, moment != .ended { operation.finish(withError: .broken) }
            // The thread that was setting the timer of the delay removes it itself.
            guard ended.haveAllCome(), comesTrue({ queue.operationCount == 0 && clock.pendingCount == 0 }) else {
                return false
            }
            guard moment != .ended else { return operation.outcome == .success(1) && told.missingCount == 1 }
            guard told.haveAllCome(), told.missingCount == 0, operation.outcome == .cancelled(.requested) else {
                return false
            }
            return began.missingCount == (isToBegin || moment == .inDelay ? 0 : 1)
        }
        #expect(isRight)
    }

    @Test(
        "Scenario 7 (AdvancedNSOperations#8): a queue whose operations are canceled at random drains",
        arguments: 1...4)
    func random(seed: UInt64) async throws {
        NoticeHub.install()
        let failures = try await TestThread.run {
            var random = SeededGenerator(seed: seed)
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = 4
            let team = ThreadTeam(count: 4)
            let count = Rounds.count(ci: 400, soak: 20_000)
            let (ended, told) = (Arrivals(count), Arrivals(count))
            var operations: [HeldWork] = []
            for number in 0..<count {
                let operation = HeldWork(windsDown: random.chance(1, in: 3)) { work in
                    DispatchQueue.global().async { work.finish(withResult: number) }
                }
                if let last = operations.last, random.chance(1, in: 3) { operation.addDependency(last) }
                operation.completionBlock = { ended.arrive() }
                operation.observe(on: .global()) { _ in told.arrive() }
                operations.append(operation)
            }
            let added = operations
            let victims = operations.shuffled(using: &random)
            let add: @Sendable () -> Void = { for operation in added { queue.addOperation(operation) } }
            let cancel: [@Sendable () -> Void] = (0..<3).map { thread in
                { for number in stride(from: thread, to: count, by: 4) { victims[number].cancel() } }
            }
            team.run([add] + cancel)
            guard ended.haveAllCome(), told.haveAllCome() else { return -1 }
            return queue.operationCount + abs(ended.missingCount) + abs(told.missingCount)
        }
        #expect(failures == 0, "seed \(seed)")
    }

    @Test
    func `TRVSURLSessionOperation#3: every kind of waiter is notified when an operation is canceled`() async throws {
        let operation = HeldWork(windsDown: true)
        let (handled, observed) = (Gate(), Gate())
        operation.callbackQueue = DispatchQueue(label: "told")
        operation.cancellationHandler = { _ in handled.open() }
        operation.observe { if $0.cancellationCause != nil { observed.open() } }
        operation.start()
        async let failure = failure(of: operation)
        async let outcome = operation.finalOutcome
        async let waited = TestThread.run { (try? operation.startAndWait()) == nil }
        operation.cancel()
        await handled.passage()
        await observed.passage()
        #expect(await outcome == .cancelled(.requested))
        #expect(await failure == .cancelled(.requested))
        #expect(try await waited)
        operation.finish(withResult: 1)
    }
}

private func failure(of operation: HeldWork) async -> OperationFailure<WorkError>? {
    do throws(OperationFailure<WorkError>) {
        _ = try await operation.value
        return nil
    } catch {
        return error
    }
}
