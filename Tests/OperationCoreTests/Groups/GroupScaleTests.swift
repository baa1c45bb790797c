// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Deep, wide and numerous groups.
@Suite(.timeLimit(.minutes(Rounds.minutes)))
struct GroupScaleTests {
    /// The form of the bodies in nested groups.
    enum Form: CaseIterable, Sendable { case async, synchronous, mixed }

    /// Creates nested groups to the given depth.
    private static func nested(_ depth: Int, _ form: Form, _ census: LiveObjects) -> GroupOperation<Int, GroupFailure> {
        let isAsync = form == .async || form == .mixed && depth % 2 == 0
        let group =
            isAsync
            ? GroupOperation { group in
                depth == 1
                    ? try await group.run(ClosureOperation { 1 })
                    : try await group.run(nested(depth - 1, form, census)) + 1
            }
            : GroupOperation(synchronous: { group in
                depth == 1
                    ? try group.perform(ClosureOperation { 1 })
                    : try group.perform(nested(depth - 1, form, census)) + 1
            })
        return census.track(group)
    }

    @Test func `a body that blocks a thread runs 10,000 nested groups on a queue of width 1`() async throws {
        var chain = GroupOperation(policy: .failFast)
        try chain.add(ClosureOperation { 1 })
        for _ in 0..<10_000 {
            let outer = GroupOperation(policy: .failFast)
            try outer.add(chain)
            chain = outer
        }
        let outermost = chain
        let body = GroupOperation(synchronous: { group in try group.perform(outermost) })
        try QueueManager("deep", width: 1).add(body)
        await body.ended()
        #expect(body.outcome?.result != nil && outermost.outcome?.result != nil)
    }

    @Test(
        arguments: Form.allCases
    )
    func `scenario 25 (taskflow#435): 200 nested groups end on a queue of width 1`(form: Form) async throws {
        let (depth, threads) = try await TestThread.run {
            let (queue, census) = (QueueManager("deep", width: 1), LiveObjects())
            let depth = try {
                let group = Self.nested(200, form, census)
                try queue.add(group)
                return try group.startAndWait()
            }()
            try queue.waitUntilAllFinished()
            let threads = WorkerPool.shared.count
            return (census.countAtRest() == 0 ? depth : -1, threads)
        }
        #expect(depth == 200 && threads <= QueueManager.threadLimit)
    }

    @Test(
        arguments: Form.allCases
    )
    func `scenario 26: 1,000 groups with three children each end on a queue of width 1`(form: Form) async throws {
        let (sum, threads, isOver) = try await TestThread.run {
            let queue = QueueManager("wide", width: 1)
            let running = Tally()
            let groups = (0..<1_000).map { number in
                let isAsync = form == .async || form == .mixed && number % 2 == 0
                let child: @Sendable (Int) -> ClosureOperation<Int, Never> = { part in
                    ClosureOperation { running.during { number + part } }
                }
                return isAsync
                    ? GroupOperation { group in
                        async let first = group.run(child(0))
                        async let second = group.run(child(1))
                        return try await first + second + group.run(child(2))
                    }
                    : GroupOperation(synchronous: { group in
                        let first = try group.perform(child(0))
                        // An asynchronous child makes the thread wait.
                        return try first + group.perform(TaskOperation { number + 1 }) + group.perform(child(2))
                    })
            }
            try queue.add(groups)
            try queue.waitUntilAllFinished()
            let sum = groups.compactMap { $0.outcome?.result }.reduce(0, +)
            return (sum, WorkerPool.shared.count, running.peak == 1)
        }
        #expect(sum == (0..<1_000).reduce(0) { $0 + 3 * $1 + 3 } && threads <= QueueManager.threadLimit)
        #expect(isOver, "several children ran at the same time on a queue of width 1")
    }

    @Test func `scenario 26: 1,000 nested groups that are started without a queue end and are freed`() async throws {
        let census = LiveObjects()
        let depth = try await Self.nested(1_000, .async, census).run()
        let left = try await TestThread.run { census.countAtRest() }
        #expect(depth == 1_000 && left == 0)
    }

    /// Creates a tree of groups with ten groups each, and the given number of leaves.
    private static func tree(_ leaves: Int, from first: Int, _ census: LiveObjects) -> GroupOperation<Int, GroupFailure>
    {
        let group: GroupOperation<Int, GroupFailure>
        if leaves == 1 {
            group = GroupOperation(synchronous: { _ in first })
        } else {
            let part = leaves / 10
            group = GroupOperation { group in
                let parts = GroupOperation.all((0..<10).map { tree(part, from: first + $0 * part, census) })
                return try await group.run(parts).reduce(0, +)
            }
        }
        return census.track(group)
    }

    @Test func `scenario 26: a tree of groups with many leaves (skynet) runs and is freed`() async throws {
        let leaves = Rounds.count(ci: 1_000, soak: 100_000) >= 100_000 ? 100_000 : 1_000
        let (sum, left) = try await TestThread.run {
            let (queue, census) = (QueueManager("skynet", width: 2), LiveObjects())
            let sum = try {
                let root = Self.tree(leaves, from: 0, census)
                try queue.add(root)
                return try root.startAndWait()
            }()
            try queue.waitUntilAllFinished()
            return (sum, census.countAtRest())
        }
        #expect(sum == leaves * (leaves - 1) / 2 && left == 0)
    }

    /// The course of a deep chain of groups with one child each, on a small stack.
    enum Fate: CaseIterable, Sendable { case freed, cancelledBefore, runs, cancelledWhileItRuns }

    @Test(arguments: Fate.allCases)
    func `scenario 26: a chain of thousands of declared groups needs only a small stack`(fate: Fate) async throws {
        let (isRight, left) = try await TestThread.run(stackSize: 512 << 10) {
            let (queue, census) = (QueueManager("chain", width: 1), LiveObjects())
            let isRight = try {
                let gate = HandDriven()
                var inner: ManagedOperation = census.track(gate)
                var all: [ManagedOperation] = [inner]
                for _ in 0..<(Rounds.isSoak ? 100_000 : 5_000) {
                    let outer = census.track(GroupOperation(policy: .failFast))
                    try outer.add(inner)
                    inner = outer
                    if fate != .freed { all.append(outer) }
                }
                if fate == .freed {
                    all = []
                    return true
                }
                if fate == .cancelledBefore {
                    inner.cancel()
                    guard gate.isCancelled else { return false }
                    try queue.add(inner)
                } else {
                    try queue.add(inner)
                    while gate.state != .executing { sched_yield() }
                    if fate == .runs { gate.finish(withResult: 1) } else { inner.cancel() }
                }
                try queue.waitUntilAllFinished()
                inner.waitUntilFinished()
                let isCancelled = fate != .runs
                return all.allSatisfy { $0.isFinished && $0.isCancelled == isCancelled }
            }()
            return (isRight, census.countAtRest())
        }
        #expect(isRight && left == 0)
    }

    @Test func `scenario 26: 10,000 pending children are canceled with their group`() async throws {
        let (causes, left) = try await TestThread.run {
            let (queue, census) = (QueueManager.suspended("many", width: 2), LiveObjects())
            let causes = try {
                let group = GroupOperation(policy: .failFast, on: queue).named("many")
                let count = Rounds.count(ci: 10_000, soak: 100_000)
                let children = (0..<count).map { number in census.track(ClosureOperation { number }) }
                try group.add(children)
                group.start()
                group.cancel(because: .requested("enough"))
                group.waitUntilFinished()
                return Set(children.map { "\($0.cancellationCause?.description ?? "none") \($0.isFinished)" })
            }()
            return (causes, census.countAtRest())
        }
        #expect(
            causes == [
                "[groupCancelled] The operation was canceled with its group (many). ← [requested] enough true"
            ])
        #expect(left == 0)
    }
}
