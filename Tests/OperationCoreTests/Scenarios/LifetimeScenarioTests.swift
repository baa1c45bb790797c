// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Scenarios: lifetimes", .timeLimit(.minutes(2)))
struct LifetimeScenarioTests {
    /// The state in which an operation with timers of an hour is released.
    enum Stage: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case neverStarted = "never started", delayed = "in its delay", executing, suspended, cancelled, finished
        case behindDependency = "behind a dependency"
        var testDescription: String { rawValue }
    }

    @Test(
        "Scenario 14 (ProcedureKit#622): an operation with timers of an hour is freed immediately with its timers",
        arguments: Stage.allCases)
    func timers(stage: Stage) {
        let (census, clock) = (LiveObjects(), ManualClock())
        let other = HeldWork()
        other.start()
        autoreleasing {
            let operation = census.track(HeldWork())
            operation.setTimeout(.seconds(3_600), on: clock)
            operation.deadline = clock.now.advanced(by: .seconds(3_600))
            operation.observe { _ in }
            operation.completionBlock = {}
            if stage == .delayed || stage == .neverStarted { operation.startDelay = .seconds(3_600) }
            if stage == .behindDependency { operation.addDependency(other) }
            if stage != .neverStarted { operation.start() }
            switch stage {
            case .suspended: operation.suspend()
            case .cancelled: operation.cancel()
            case .finished: operation.finish(withResult: 1)
            case .neverStarted, .delayed, .executing, .behindDependency: break
            }
            let isOver = stage == .cancelled || stage == .finished
            #expect((clock.pendingCount == 0) == isOver)
        }
        if stage == .cancelled || stage == .finished {
            // The enqueued observer and completion block keep the operation alive until they are called.
            #expect(clock.pendingCount == 0)
        } else {
            #expect(census.types == [])
            #expect(clock.pendingCount == 0)
        }
        other.finish(withResult: 1)
    }

    /// The way in which an operation ends.
    enum Way: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case succeeds, fails, isCancelled, isCancelledBeforeStart, isCancelledAndNeverStarted
        var testDescription: String { rawValue }
    }

    @Test(
        "Scenario 15 (ProcedureKit PR#223): handlers that capture their operation do not keep it alive",
        arguments: Way.allCases)
    func handlers(way: Way) async throws {
        let freed = Arrivals(2)
        let isFreed = try await TestThread.run {
            autoreleasing {
                let upstream = QuickWork(trace: Trace(freed))
                let operation = HeldWork(trace: Trace(freed)) { work in
                    switch way {
                    case .succeeds: work.finish(withResult: 1)
                    case .fails: work.finish(withError: .broken)
                    case .isCancelled, .isCancelledBeforeStart, .isCancelledAndNeverStarted: work.cancel()
                    }
                }
                operation.callbackQueue = DispatchQueue(label: "scenario 15")
                operation.successHandler = { _ in _ = (operation, upstream) }
                operation.failureHandler = { _ in _ = (operation, upstream) }
                operation.cancellationHandler = { _ in _ = (operation, upstream) }
                operation.observe { _ in _ = (operation, upstream) }
                if way != .isCancelledAndNeverStarted {
                    operation.completionBlock = { _ = (operation, upstream) }
                    try? operation.receive(from: upstream, otherwise: .cancel) { _, _ in _ = (operation, upstream) }
                }
                upstream.start()
                if way == .isCancelledBeforeStart || way == .isCancelledAndNeverStarted { operation.cancel() }
                if way != .isCancelledAndNeverStarted { operation.start() }
            }
            return freed.haveAllCome()
        }
        #expect(isFreed)
    }

    @Test(
        "Scenario 15 (PINRemoteImage#464): closures that capture their operation do not keep it alive",
        arguments: [false, true])
    func bodies(cancelled: Bool) async throws {
        let freed = Arrivals(2)
        let isFreed = try await TestThread.run {
            autoreleasing {
                let (own, taskOwn) = (Knot(Trace(freed)), Knot(Trace(freed)))
                let closure = ClosureOperation { _ = own.operation }
                let task = TaskOperation { _ = taskOwn.operation }
                own.operation = closure
                taskOwn.operation = task
                for operation in [closure, task] as [ManagedOperation] {
                    if cancelled { operation.cancel() } else { operation.start() }
                }
            }
            return freed.haveAllCome()
        }
        #expect(isFreed)
    }
}

/// Connects a closure to the operation whose body it is.
private final class Knot: Sendable {
    private let trace: Trace
    private let held = Locked(nil as ManagedOperation?)

    init(_ trace: Trace) { self.trace = trace }

    var operation: ManagedOperation? {
        get { held.withLock { $0 } }
        set { held.withLock { $0 = newValue } }
    }
}
