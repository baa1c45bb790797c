// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Groups that another thread changes in the moments between two locks.
@Suite(.nothingStaysAlive, .timeLimit(.minutes(Rounds.minutes)))
struct GroupMomentTests {
    /// Plays rounds on two threads, each with a random pause, until a round has a flaw.
    private func rounds(
        ci: Int, soak: Int, _ round: @escaping @Sendable (_ pause: Int, ThreadTeam) throws -> String?
    ) async throws {
        let flaw = try await TestThread.run { () -> String? in
            var random = SeededGenerator(seed: Rounds.firstSeed)
            let team = ThreadTeam(count: 2)
            for number in 0..<Rounds.count(ci: ci, soak: soak) {
                let pause = Int.random(in: 0..<Int(1 << Int.random(in: 0..<11, using: &random)), using: &random)
                if let flaw = try round(pause, team) { return "round \(number): \(flaw)" }
            }
            return nil
        }
        #expect(flaw == nil)
    }

    @Test func `a declared group ends if it is canceled while it concludes`() async throws {
        try await rounds(ci: 5_000, soak: 200_000) { pause, team in
            let child = HandDriven()
            let group = GroupOperation.all([child])
            group.start()
            while child.state != .executing { sched_yield() }
            team.run([
                { child.finish(withResult: 1) },
                {
                    for _ in 0..<pause { _ = group.state }
                    group.cancel()
                },
            ])
            group.waitUntilFinished()
            return group.outcome == nil ? "no outcome" : nil
        }
    }

    @Test func `a declared group ends if it is canceled just before it concludes`() async {
        let child = HandDriven("child", windsDown: true)
        let group = GroupOperation.all([child])
        await group.start(untilExecuting: child)
        group.cancel()
        #expect(!group.isFinished)
        // Make the call of a thread that read the state before the cancellation.
        group.concludeGroup(.success)
        #expect(group.isFinished && group.isCancelled)
        child.finish(withResult: 1)
    }

    @Test func `a group ends if another thread cancels a child that is about to begin in place`() async throws {
        try await rounds(ci: 3_000, soak: 100_000) { pause, team in
            let child = ClosureOperation { 1 }
            let others = (0..<3).map { number in ClosureOperation { number } }
            let group = GroupOperation<Int, GroupFailure>(
                width: 1,
                synchronous: { group in
                    let first = (try? group.perform(child)) ?? 0
                    for other in others { try group.add(other) }
                    return try first + group.perform(ClosureOperation { 1 })
                })
            team.run([
                { group.start() },
                {
                    for _ in 0..<pause { _ = child.state }
                    child.cancel()
                },
            ])
            group.waitUntilFinished()
            let result = group.outcome?.result
            let isRight = result == (child.isCancelled ? 1 : 2) && others.allSatisfy { $0.isFinished }
            return isRight ? nil : "\(String(describing: group.outcome))"
        }
    }

    @Test func `if two groups are concurrently added to each other, one is refused`() async throws {
        try await rounds(ci: 3_000, soak: 100_000) { _, team in
            let (one, two) = (GroupOperation(policy: .collectAll), GroupOperation(policy: .collectAll))
            let taken = Locked(0)
            let add: @Sendable (GroupOperation<Void, GroupFailure>, GroupOperation<Void, GroupFailure>) -> Void = {
                do throws(OperationSetupError) {
                    try $0.add($1)
                    taken.withLock { $0 += 1 }
                } catch {}
            }
            team.run([{ add(one, two) }, { add(two, one) }])
            // A group that is freed without a cancellation would keep the other one alive forever.
            let count = taken.withLock { $0 }
            for group in [one, two] { group.cancel() }
            return count == 1 ? nil : "\(count) were taken"
        }
    }

    @Test func `canceling a task ends its wait for an operation outside the group`() async throws {
        let other = HandDriven("other")
        other.start()
        let waits = Locked<Task<Int, any Error>?>(nil)
        let group = GroupOperation<CancellationCause?, GroupFailure> { group in
            let task = Task<Int, any Error> { try await group.run(other) }
            waits.withLock { $0 = task }
            do {
                _ = try await task.value
            } catch let failure as OperationFailure<Flaw> {
                // The second task is canceled before it begins to wait.
                let late = Task<Int, any Error> {
                    withUnsafeCurrentTask { $0?.cancel() }
                    return try await group.run(other)
                }
                let second = await late.result
                if case .failure(let error as OperationFailure<Flaw>) = second { return error.cause ?? failure.cause }
            }
            return nil
        }
        group.start()
        while group.externalWaitCount == 0 { await Task.yield() }
        waits.withLock { $0 }?.cancel()
        #expect(try await group.value?.code == .taskCancelled)
        #expect(!other.isCancelled && group.externalWaitCount == 0)
        other.finish(withResult: 1)
    }

    @Test func `a shielded result that came during a suspension is delivered despite a cancellation`() async {
        let child = HandDriven("child")
        let given = EventRecorder<Int>()
        let group = GroupOperation<Int, GroupFailure> { group in
            let result = try await group.shield { try await $0.run(child) }
            given.record(result)
            return result
        }
        await group.start(untilExecuting: child)
        group.suspend()
        child.finish(withResult: 5)
        while group.presentCount > 0 { await Task.yield() }
        await group.cancelAndEnd()
        #expect(given.events == [5] && group.isCancelled)
    }

    @Test func `errors of nested groups keep sixteen levels and the original failure`() async {
        var operation: TypedOperation<Int, GroupFailure> = GroupOperation<Int, GroupFailure> { group in
            try await group.run(ClosureOperation<Int, Flaw> { () throws(Flaw) -> Int in throw .second }.named("leaf"))
        }
        for level in 0..<100 {
            let inner = operation
            operation =
                level % 2 == 0
                ? GroupOperation<Int, GroupFailure> { group in try await group.run(inner) }
                : GroupOperation.all([inner]).only()
        }
        await operation.startAndEnd()
        var (depth, error) = (0, operation.outcome?.error)
        let root = error?.root
        while let inner = error?.child?.failure.groupFailure {
            depth += 1
            error = inner
        }
        #expect(depth <= 17 && "\(operation.outcome?.error as Any)".utf8.count < 4_000)
        guard case .failed(let flaw as Flaw) = root?.failure else { return unmet("\(String(describing: root))") }
        #expect(flaw == .second)
    }
}

extension GroupOperation where ResultType == [Int], ErrorType == GroupFailure {
    /// Returns a group around this one that returns its only result.
    fileprivate func only() -> GroupOperation<Int, GroupFailure> {
        GroupOperation<Int, GroupFailure> { group in try await group.run(self)[0] }
    }
}

extension OperationFailure where ErrorType == any Error {
    fileprivate var groupFailure: GroupFailure? {
        if case .failed(let error) = self { error as? GroupFailure } else { nil }
    }
}
