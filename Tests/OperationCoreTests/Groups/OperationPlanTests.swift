// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Groups that are described once and run many times.
@Suite(.nothingStaysAlive, .timeLimit(.minutes(1)))
struct OperationPlanTests {
    private func doubling(_ runs: EventRecorder<Int> = EventRecorder()) -> OperationPlan<Int, Int> {
        OperationPlan { (number: Int) in
            ClosureOperation {
                runs.record(number)
                return number * 2
            }
        }
    }

    @Test func `a plan runs nothing until it is used, and then runs once for each input`() async throws {
        let runs = EventRecorder<Int>()
        let plan = doubling(runs).then(doubling(runs)).mapResult { "\($0)" }
        #expect(runs.events.isEmpty)
        let all = GroupOperation.map(0..<50, width: 4) { plan.operation(for: $0) }
        #expect(try await all.run() == (0..<50).map { "\($0 * 4)" })
        #expect(try await plan.operation(for: 7).run() == "28" && runs.count == 102)
    }

    @Test func `and, all and firstSuccess combine the results of plans`() async throws {
        let text = OperationPlan { (number: Int) in TaskOperation { "\(number)" } }
        let (both, single) = try await doubling().and(text).operation(for: 4).run()
        #expect(both == 8 && single == "4")
        let three = OperationPlan.all(doubling(), text, doubling().then(doubling()))
        let (one, two, last) = try await three.operation(for: 5).run()
        #expect(one == 10 && two == "5" && last == 20)
        let never = OperationPlan { (_: Int) in ClosureOperation<Int, Flaw> { () throws(Flaw) -> Int in throw .first } }
        #expect(try await OperationPlan.firstSuccess(of: [never, doubling()]).operation(for: 3).run() == 6)
    }

    @Test func `combined plans run concurrently, and the first failure cancels the other plan`() async throws {
        let (left, right) = (HandDriven("left"), HandDriven("right"))
        let plan = OperationPlan { (_: Int) in left }.and(OperationPlan { (_: Int) in right })
        let group = plan.operation(for: 1)
        group.start()
        for child in [left, right] { while child.state != .executing { await Task.yield() } }
        left.finish(withError: .second)
        await group.ended()
        #expect(right.isCancelled && group.outcome?.error?.root?.name == "left")
    }

    @Test func `forEach runs a plan or operations for each element, up to its width`() async throws {
        let counts = Locked((now: 0, most: 0))
        let step = OperationPlan { (number: Int) in
            TaskOperation { () async -> Int in
                counts.withLock { counts in
                    counts.now += 1
                    counts.most = max(counts.most, counts.now)
                }
                await Task.yield()
                counts.withLock { $0.now -= 1 }
                return number + 1
            }
        }
        let list = OperationPlan { (count: Int) in ClosureOperation { Array(0..<count) } }
        let plan = list.forEach(width: 2, step).forEach(width: 3) { number in ClosureOperation { number * 10 } }
        #expect(try await plan.operation(for: 20).run() == (1...20).map { $0 * 10 })
        #expect(counts.withLock { $0.most <= 2 && $0.now == 0 })
    }

    @Test func `a plan can contain a pipeline whose stage uses another plan`() async throws {
        let plan = OperationPlan { (count: Int) in ClosureOperation { Array(0..<count) } }
            .then { numbers in
                OperationPipeline(numbers).stage(width: 2) { doubling().operation(for: $0) }.operation()
            }
        #expect(try await plan.operation(for: 4).run() == [0, 2, 4, 6])
    }

    @Test func `retry repeats a failed step, and recover replaces its result afterward`() async throws {
        let tries = EventRecorder<Int>()
        let flaky = OperationPlan { (number: Int) in
            ClosureOperation<Int, Flaw> { () throws(Flaw) -> Int in
                tries.record(number)
                if tries.events.count(where: { $0 == number }) < number { throw .first }
                return number
            }
        }
        #expect(try await flaky.retry(atMost: 2).operation(for: 3).run() == 3 && tries.events == [3, 3, 3])
        let other = flaky.retry(atMost: 1).recover { failed, number in .result(-number) }.then(doubling())
        #expect(try await other.operation(for: 9).run() == -18 && tries.count == 5)
        let hopeless = flaky.retry(atMost: 1).operation(for: 8)
        await hopeless.startAndEnd()
        #expect(hopeless.outcome?.error?.root?.failure.flaw == .first && tries.count == 7)
    }

    @Test func `canceling a run of a plan cancels its operations and creates no more`() async throws {
        let first = HandDriven("first")
        let made = Locked(0)
        let plan = OperationPlan { (_: Int) in first }
            .then { number in
                made.withLock { $0 += 1 }
                return ClosureOperation { number }
            }
        let group = plan.operation(for: 1, width: 1)
        group.start()
        while first.state != .executing { await Task.yield() }
        group.cancel(because: .requested("enough"))
        await group.ended()
        #expect(first.isCancelled && made.withLock { $0 } == 0 && group.cancellationCause == .requested("enough"))
    }
}

extension OperationFailure where ErrorType == any Error {
    fileprivate var flaw: Flaw? { if case .failed(let error) = self { error as? Flaw } else { nil } }
}
