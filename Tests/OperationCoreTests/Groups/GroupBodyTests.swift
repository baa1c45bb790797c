// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Groups with asynchronous and synchronous bodies.
@Suite(.nothingStaysAlive, .timeLimit(.minutes(1)))
struct GroupBodyTests {
    enum AppError: Error { case number(OperationFailure<Flaw>), odd(Int) }

    private func failing(_ name: String = "failing") -> ClosureOperation<Int, Flaw> {
        let operation = ClosureOperation<Int, Flaw> { () throws(Flaw) in throw .first }.named(name)
        return operation
    }

    @Test func `an async body runs children of different types sequentially and concurrently`() async throws {
        let group = GroupOperation { group in
            let number = try await group.run(ClosureOperation { 3 })
            async let text = group.run(ClosureOperation { "\(number)" })
            async let half = group.run(TaskOperation { Double(number) / 2 })
            return try await (text, half)
        }
        let (text, half) = try await group.run()
        #expect(text == "3" && half == 1.5)
    }

    @Test func `a task group in the body runs children`() async throws {
        let group = GroupOperation { group in
            try await withThrowingTaskGroup(of: Int.self) { tasks in
                for number in 0..<20 { tasks.addTask { try await group.run(ClosureOperation { number }) } }
                return try await tasks.reduce(0, +)
            }
        }
        #expect(try await group.run() == 190)
    }

    @Test func `a synchronous body runs from top to bottom on one thread`() async throws {
        let isRight = try await TestThread.run {
            let me = ThreadMark()
            let group = GroupOperation(synchronous: { group in
                let isHere = try group.perform(ClosureOperation { me.isCurrent })
                let number = try group.perform(TaskOperation { 4 })
                return isHere && number == 4
            })
            return try group.startAndWait()
        }
        #expect(isRight)
    }

    @Test func `a group fails with the error that its body throws`() async {
        let group = GroupOperation<Int, AppError> { group async throws(AppError) in
            let number = try await group.run(ClosureOperation { 3 }, orThrow: { _ in AppError.odd(0) })
            if number % 2 == 1 { throw .odd(number) }
            return number
        }
        guard case .failed(.odd(3)) = await failure(of: group) else { return unmet("wrong error") }
    }

    @Test func `orThrow converts the failure of a child to an error of the body`() async {
        let child = failing()
        let group = GroupOperation<Int, AppError> { group async throws(AppError) in
            try await group.run(child, orThrow: AppError.number)
        }
        guard case .failed(.number(.failed(.first))) = await failure(of: group)
        else { return unmet("not the failure of the child") }
    }

    @Test func `a group with the error type any Error fails with the error of its child`() async {
        let child = failing()
        let group = GroupOperation<Int, any Error> { group in try await group.run(child) }
        await group.startAndEnd()
        #expect(group.outcome?.error as? Flaw == .first)
    }

    @Test func `by default, the error names the failed child and contains the failures of siblings`() async throws {
        let (first, second) = (failing("download"), failing("decode"))
        let group = GroupOperation { group in
            _ = try? await group.run(second)
            return try await group.run(TaskOperation<Int, any Error> { throw Flaw.second }.named("tag"))
                + group.run(first)
        }.named("import")
        guard case .failed(let error) = await failure(of: group) else { return unmet("no failure") }
        #expect(error.child?.name == "tag" && error.underlyingError as? Flaw == .second && error.group == "import")
        #expect(error.siblings.map(\.name) == ["decode"])
        #expect(error.description.contains("tag, a child of import, failed: second"))
    }

    @Test func `the error of nested groups leads to the innermost child`() async throws {
        let child = failing("leaf")
        let group = GroupOperation { outer in
            try await outer.run(GroupOperation { inner in try await inner.run(child) }.named("inner"))
        }
        guard case .failed(let error) = await failure(of: group) else { return unmet("no failure") }
        #expect(error.child?.name == "inner" && error.root?.name == "leaf")
    }

    @Test func `a child's cancellation that the body does not catch cancels the group`() async {
        let child = HandDriven("child", hooks: .init(main: { $0.cancel(because: .requested("no wish")) }))
        let group = GroupOperation { group in try await group.run(child) }
        await group.startAndEnd()
        let cause = group.cancellationCause
        #expect(cause?.code == .childCancelled && cause?.underlyingCause == .requested("no wish"))
    }

    @Test func `a group ends after all of its children, even if its body does not await them`() async throws {
        let gate = Gate()
        let child = TaskOperation { await gate.passage() }
        let group = GroupOperation { group in
            try group.add(child)
            return 1
        }
        group.start()
        while group.engineIsRunningBody { await Task.yield() }
        #expect(!group.isFinished && group.outcome == nil)
        gate.open()
        await group.ended()
        #expect(group.outcome?.result == 1 && child.isFinished)
    }

    @Test(arguments: [false, true])
    func `a group that awaits an operation outside the group does not cancel it`(isSynchronous: Bool) async throws {
        let (gate, queue) = (Gate(), QueueManager(width: 1))
        let other = TaskOperation { await gate.passage() }
        try queue.add(other)
        let group =
            isSynchronous
            ? GroupOperation(synchronous: { group in try group.perform(other) })
            : GroupOperation { group in try await group.run(other) }
        group.startOnThread()
        while group.externalWaitCount == 0 { await Task.yield() }
        await group.cancelAndEnd()
        #expect(group.isCancelled && !other.isCancelled && !other.isFinished)
        gate.open()
        await other.ended()
        // After its end, its result is returned immediately.
        let late = GroupOperation { group in
            try await group.run(other)
            return 2
        }
        #expect(try await late.run() == 2)
    }

    @Test func `neither a group itself nor a group around it can be its child`() async throws {
        let holder = Locked<GroupOperation<Int, GroupFailure>?>(nil)
        let group = GroupOperation { group in
            let outer = holder.withLock { $0 }
            return try await group.run(
                GroupOperation { inner in
                    do throws(OperationFailure<GroupFailure>) {
                        return try await inner.run(outer ?? GroupOperation { _ in 0 })
                    } catch {
                        return error.cause?.code == .groupRefused ? 7 : 8
                    }
                })
        }
        holder.withLock { $0 = group }
        #expect(try await group.run() == 7)
        holder.withLock { $0 = nil }
        let idle = GroupOperation(policy: .failFast)
        #expect(throws: OperationSetupError.self) { try idle.add(idle) }
    }

    @Test func `a scope that outlives its group refuses children`() async throws {
        let kept = Locked<GroupScope?>(nil)
        let group = GroupOperation { group in kept.withLock { $0 = group } }
        try await group.run()
        await group.ended()
        guard let scope = kept.withLock({ $0 }) else { return #expect(Bool(false)) }
        let late = ClosureOperation { 1 }
        #expect(throws: OperationSetupError.self) { try scope.add(late) }
        await #expect(throws: OperationFailure<Never>.self) { try await scope.run(late) }
        // The refused operation is unchanged.
        #expect(late.state == .notStarted)
        #expect(try await late.run() == 1)
    }

    @Test func `startAndWait in a synchronous body runs a child that is canceled with the group`() async {
        let began = Gate(), child = HandDriven(windsDown: true, hooks: .init(main: { _ in began.open() }))
        let group = GroupOperation(synchronous: { _ in try child.startAndWait() })
        group.startOnThread()
        await began.passage()
        #expect(group.presentCount == 1)
        group.cancel()
        #expect(child.isCancelled && child.cancellationCause?.code == .groupCancelled)
        #expect(!group.isFinished)
        child.finish(withResult: 1)
        await group.ended()
        #expect(child.isFinished)
    }

    @Test func `startAndWait in a synchronous body returns results and needs no second slot`() async throws {
        let queue = QueueManager("narrow", width: 1)
        let group = GroupOperation(synchronous: { _ in
            let failing: ClosureOperation<Int, Flaw> = ClosureOperation { () throws(Flaw) in throw .second }
            do throws(OperationFailure<Flaw>) { try failing.startAndWait() } catch {
                #expect(error == .failed(.second))
            }
            return try ClosureOperation { 20 }.startAndWait() + TaskOperation { 22 }.startAndWait()
        })
        try queue.add(group)
        #expect(try await group.value == 42)
    }

    @Test func `startAndWait in a shielded part of a synchronous body is not canceled with the group`() async {
        let began = Gate(), child = HandDriven(hooks: .init(main: { _ in began.open() }))
        let group = GroupOperation(synchronous: { group in try group.shield { _ in try child.startAndWait() } })
        group.startOnThread()
        await began.passage()
        group.cancel()
        #expect(!child.isCancelled && group.presentCount == 1)
        child.finish(withResult: 1)
        await group.ended()
        #expect(child.outcome == .success(1))
    }

    @Test func `startAndWait in an async body is refused with an explanation and starts nothing`() async {
        let child = HandDriven()
        // The compiler refuses the call in the body itself.
        let wait: @Sendable () throws -> Int = { try child.startAndWait() }
        let group = GroupOperation { _ in
            await Task.yield()
            return try wait()
        }
        await group.startAndEnd()
        let refusal = group.cancellationCause?.underlyingCause
        #expect(group.cancellationCause?.code == .childCancelled && refusal?.code == .groupRefused)
        #expect((refusal?.underlyingError as? OperationSetupError)?.code == .cannotWait)
        #expect(refusal?.message.contains("try await group.run(operation)") == true)
        #expect(child.calls.events.isEmpty && child.outcome == nil)
    }

    @Test func `startAndWait in a body only waits for an operation that was already started`() async throws {
        let others = (0..<2).map { _ in HandDriven(hooks: .init(main: { $0.finish(withResult: 3) })) }
        for other in others { other.start() }
        let wait: @Sendable (Int) throws -> Int = { try others[$0].startAndWait() }
        let tasks = GroupOperation { _ in
            await Task.yield()
            return try wait(0)
        }
        #expect(try await tasks.run() == 3)
        #expect(try await GroupOperation(synchronous: { _ in try wait(1) }).run() == 3)
    }

    @Test func `startAndWait in the body of a child does not add a child to the group`() async {
        let began = Gate(), inner = HandDriven(hooks: .init(main: { _ in began.open() }))
        let group = GroupOperation(synchronous: { group in
            try group.perform(ClosureOperation { () throws -> Int in try inner.startAndWait() })
        })
        group.startOnThread()
        await began.passage()
        #expect(group.presentCount == 1)
        group.cancel()
        #expect(!inner.isCancelled)
        inner.finish(withResult: 3)
        await group.ended()
        #expect(inner.outcome == .success(3))
    }

    @Test func `a synchronous body can run children only on its own thread`() async throws {
        let code = try await TestThread.run {
            let group = GroupOperation(synchronous: { group -> CancellationCause.Code? in
                let code = Locked<CancellationCause.Code?>(nil)
                let team = ThreadTeam(count: 1)
                team.run([
                    {
                        do throws(OperationFailure<Never>) { _ = try group.perform(ClosureOperation { 1 }) } catch {
                            code.withLock { $0 = error.cause?.code }
                        }
                    }
                ])
                return code.withLock { $0 }
            })
            return try group.startAndWait()
        }
        #expect(code == .groupRefused)
    }
}

private func failure<Result, Failure>(of group: GroupOperation<Result, Failure>) async -> OperationFailure<Failure>? {
    do throws(OperationFailure<Failure>) {
        _ = try await group.run()
        return nil
    } catch {
        return error
    }
}
