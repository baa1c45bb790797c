// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

private enum Local {
    @TaskLocal static var number = 0
    @TaskLocal static var witness: Witness?
}

/// Runs work in a task with values and a priority.
private func inTask<Result: Sendable>(_ work: @escaping @Sendable () async throws -> Result) async throws -> Result {
    try await Task(priority: .high) { try await Local.$number.withValue(7) { try await work() } }.value
}

/// Task-local values and the priority of a task are passed to the bodies that it runs.
@Suite("The context of a task", .timeLimit(.minutes(3)))
struct TaskContextTests {
    /// The task context that a body finds.
    struct Found: Sendable, Equatable {
        var number = Local.number
        var isHigh = Task.currentPriority == .high

        static let all = Found(number: 7, isHigh: true)
    }

    typealias Finder = TypedOperation<Found, any Error>

    /// The kinds of operations whose body reads the task context.
    enum Kind: CaseIterable, Sendable {
        case closure, task, asyncGroup, syncGroup, mapped

        func make() -> Finder {
            switch self {
            case .closure: ClosureOperation { () throws -> Found in Found() }
            case .task: TaskOperation { () async throws -> Found in Found() }
            case .asyncGroup: GroupOperation<Found, any Error> { _ in Found() }
            case .syncGroup: GroupOperation<Found, any Error>(synchronous: { _ in Found() })
            case .mapped: ClosureOperation { () throws -> Found in Found() }.mapResult { $0 }
            }
        }
    }

    /// The reason that the operation waits when `run()` is called.
    enum Wait: CaseIterable, Sendable {
        case dependency, condition, delay, queue, operationQueue
    }

    @Test(arguments: Kind.allCases)
    func `run() passes the task context to every kind of body`(_ kind: Kind) async throws {
        #expect(try await inTask { try await kind.make().run() } == .all)
    }

    @Test(arguments: Kind.allCases, Wait.allCases)
    func `run() passes the task context to a body that starts later`(_ kind: Kind, _ wait: Wait) async throws {
        let operation = kind.make(), gate = Gate(), clock = ManualClock(), before = HandDriven()
        let queue = QueueManager("later"), foundationQueue = OperationQueue()
        switch wait {
        case .dependency: operation.addDependency(before)
        case .condition:
            operation.addCondition(
                OperationCondition("gate") { _ in
                    await gate.passage()
                    return .satisfied
                })
        case .delay:
            operation.clock = clock
            operation.startDelay = .seconds(60)
        case .queue:
            queue.isSuspended = true
            try queue.add(operation)
        case .operationQueue:
            foundationQueue.isSuspended = true
            foundationQueue.addOperation(operation)
        }
        async let found = inTask { try await operation.run() }
        #expect(await eventually { operation.hasTaskContext })
        switch wait {
        case .dependency:
            before.startAndFinish(withResult: 1)
        case .condition: gate.open()
        case .delay:
            #expect(await eventually { clock.pendingCount > 0 })
            clock.advance(by: .seconds(60))
        case .queue: queue.isSuspended = false
        case .operationQueue: foundationQueue.isSuspended = false
        }
        #expect(try await found == .all)
    }

    @Test(arguments: Kind.allCases, [false, true])
    func `an async group passes the task context to children that its body runs`(
        _ kind: Kind, _ isInQueue: Bool
    ) async throws {
        let queue = isInQueue ? QueueManager("children") : nil
        let group = GroupOperation<Found, any Error>(on: queue) { group in try await group.run(kind.make()) }
        #expect(try await inTask { try await group.run() } == .all)
    }

    @Test(arguments: Kind.allCases)
    func `a synchronous group passes the task context to children that its body performs`(_ kind: Kind) async throws {
        let group = GroupOperation<Found, any Error>(synchronous: { group in try group.perform(kind.make()) })
        #expect(try await inTask { try await group.run() } == .all)
    }

    @Test func `a child gets the task-local values of the task that runs it`() async throws {
        let group = GroupOperation<[Int], any Error> { group in
            async let first = Local.$number.withValue(1) { try await group.run(ClosureOperation { Local.number }) }
            async let second = Local.$number.withValue(2) { try await group.run(TaskOperation { Local.number }) }
            return try await [first, second, group.run(ClosureOperation { Local.number })]
        }
        #expect(try await inTask { try await group.run() } == [1, 2, 7])
    }

    @Test func `an operation uses the context of the first task that runs it, and a queue sets none`() async throws {
        let queue = QueueManager.suspended("values")
        let operation = ClosureOperation { Local.number }, other = TaskOperation { Local.number }
        try queue.add(operation)
        try Local.$number.withValue(3) { try queue.add(other) }
        async let first = Local.$number.withValue(1) { try await operation.run() }
        #expect(await eventually { operation.hasTaskContext })
        async let second = Local.$number.withValue(2) { try await operation.run() }
        queue.isSuspended = false
        #expect(try await first == 1)
        #expect(try await second == 1)
        #expect(try await other.value == 0)
    }

    @Test func `task-local values are released with an operation whose body never starts`() async throws {
        let gone = Gate(), never = HandDriven()
        do {
            let operation = ClosureOperation { 1 }
            operation.addDependency(never)
            let task = Local.$witness.withValue(Witness(gone)) { Task { try await operation.run() } }
            #expect(await eventually { operation.hasTaskContext })
            task.cancel()
            _ = await task.result
        }
        try await gone.passage(within: .seconds(30))
    }

    @Test func `run() in a canceled task never starts the body`() async throws {
        for _ in 0..<200 {
            let operation = HandDriven()
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await operation.run()
            }
            await #expect(throws: OperationFailure<Flaw>.cancelled(.taskCancelled)) { try await task.value }
            // The operation is still started, so that it also ends.
            await operation.ended()
            #expect(operation.calls.events == [])
        }
    }

    @Test func `a group never starts a child that is run in a canceled task`() async throws {
        for _ in 0..<100 {
            let child = HandDriven()
            let group = GroupOperation<Bool, any Error> { group in
                await Task {
                    withUnsafeCurrentTask { $0?.cancel() }
                    return (try? await group.run(child)) == nil
                }.value
            }
            #expect(try await group.run())
            #expect(child.calls.events == [] && child.isFinished)
        }
    }
}
