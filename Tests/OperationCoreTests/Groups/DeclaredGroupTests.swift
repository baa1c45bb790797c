// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Groups without a body.
@Suite(.nothingStaysAlive, .timeLimit(.minutes(1)))
struct DeclaredGroupTests {
    private func child(_ number: Int) -> HandDriven { HandDriven("\(number)") }

    private func executing(_ children: [HandDriven]) async {
        for child in children { while child.state != .executing { await Task.yield() } }
    }

    @Test func `a group of operations of different types returns a tuple of their results`() async throws {
        let group = GroupOperation.all(ClosureOperation { 1 }, TaskOperation { "two" }, ClosureOperation { 3.0 })
        let (one, two, three) = try await group.run()
        #expect(one == 1 && two == "two" && three == 3)
    }

    @Test func `a group of many operations returns their results in order, however they end`() async throws {
        let children = (0..<3).map(child)
        let group = GroupOperation.all(children)
        group.start()
        await executing(children)
        for number in [2, 0, 1] { children[number].finish(withResult: number * 10) }
        #expect(try await group.value == [0, 10, 20])
    }

    @Test func `outcomes: the group returns the outcome of each child`() async throws {
        let children = (0..<3).map(child)
        let group = GroupOperation.outcomes(of: children)
        group.start()
        await executing(children)
        children[1].finish(withError: .first)
        children[2].cancel()
        children[0].finish(withResult: 1)
        let outcomes = await group.finalOutcome
        #expect(outcomes.result == [.success(1), .failure(.first), .cancelled(.requested)])
    }

    @Test func `outcomes: an operation that cannot be a child is reported with the reason`() async {
        let taken = child(0)
        taken.start()
        let group = GroupOperation.outcomes(of: [taken])
        group.start()
        let cause = await group.finalOutcome.result?.first?.cancellationCause
        #expect((cause?.underlyingError as? OperationSetupError)?.code == .alreadyStarted)
        taken.finish(withResult: 0)
    }

    @Test func `collect all: the error of the group contains the errors of all children`() async throws {
        let children = (0..<3).map(child)
        let group = GroupOperation(policy: .collectAll)
        try group.add(children)
        group.start()
        await executing(children)
        children[2].finish(withError: .second)
        children[0].finish(withError: .first)
        #expect(children[1].state == .executing)
        children[1].finish(withResult: 1)
        await group.ended()
        #expect(group.outcome?.error?.child?.name == "2" && group.outcome?.error?.siblings.map(\.name) == ["0"])
    }

    @Test func `first success: failures are ignored, and the remaining children are canceled`() async throws {
        let children = (0..<3).map(child)
        let group = GroupOperation.firstSuccess(of: children)
        group.start()
        await executing(children)
        children[0].finish(withError: .first)
        children[2].finish(withResult: 2)
        #expect(try await group.value == 2)
        #expect(children[1].cancellationCause?.code == .groupDecided)
    }

    @Test func `race: the first child that ends decides, even with an error`() async throws {
        let children = (0..<2).map(child)
        let group = GroupOperation.race(children)
        group.start()
        await executing(children)
        children[1].finish(withError: .second)
        await group.ended()
        #expect(group.outcome?.error?.underlyingError as? Flaw == .second && children[0].isCancelled)
    }

    @Test func `quorum: the group returns the required number of results in order of the children`() async throws {
        let children = (0..<4).map(child)
        let group = GroupOperation.quorum(2, of: children)
        group.start()
        await executing(children)
        children[3].finish(withResult: 3)
        children[1].finish(withResult: 1)
        #expect(try await group.value == [1, 3])
        #expect(children[0].isCancelled && children[2].isCancelled)
    }

    @Test func `a child may depend on an operation outside, and may be added to a running group`() async throws {
        let outside = child(9)
        let first = child(0)
        first.addDependency(outside)
        let group = GroupOperation(policy: .failFast, width: 1)
        try group.add(first)
        group.start()
        let second = ClosureOperation { 1 }
        try group.add(second)
        await second.ended()
        #expect(first.state == .notStarted)
        outside.startAndFinish(withResult: 1)
        await executing([first])
        first.finish(withResult: 1)
        await group.ended()
        #expect(group.outcome?.result != nil)
        #expect { try group.add(child(3)) } throws: { ($0 as? OperationSetupError)?.code == .closed }
    }

    @Test func `an operation that cannot be a child fails the group with the reason`() async throws {
        let taken = child(0)
        taken.start()
        let group = GroupOperation.all([taken, child(1)])
        await group.startAndEnd()
        #expect((group.outcome?.error?.underlyingError as? OperationSetupError)?.code == .alreadyStarted)
        taken.finish(withResult: 0)
    }

    @Test func `a map creates operations as its width allows, and returns their results in order`() async throws {
        let present = Tally()
        let group = GroupOperation.map(0..<1_000, width: 4) { number in
            present.add()
            return ClosureOperation {
                present.add(-1)
                return number * 2
            }
        }
        #expect(present.runs == 0)
        #expect(try await group.run() == (0..<1_000).map { $0 * 2 })
        #expect(present.runs == 1_000 && present.value == 0 && present.peak <= 4)
    }

    @Test func `a canceled map ends although its last operation cannot be a child`() async {
        let taken = child(0)
        taken.start()
        let cancel = Locked<@Sendable () -> Void>({})
        let group = GroupOperation.map(0..<3, width: 1) { _ in
            cancel.withLock { $0 }()
            return taken
        }
        cancel.withLock { cancel in cancel = { [weak group] in group?.cancel(because: .requested("late")) } }
        await group.startAndEnd()
        #expect(group.cancellationCause == .requested("late"))
        taken.finish(withResult: 0)
    }

    @Test func `a dependency added after a child delays the child, which takes up no slot`() async throws {
        let order = EventRecorder<Int>()
        let (first, second) = (ClosureOperation { order.record(1) }, ClosureOperation { order.record(2) })
        let group = GroupOperation(policy: .failFast, width: 1)
        try group.add([first, second])
        try first.depend(on: second, otherwise: .cancel)
        try await group.run()
        #expect(order.events == [2, 1])
    }

    @Test func `a map fails with its first failure and creates no more operations`() async throws {
        let made = Locked(0)
        let group = GroupOperation.map(0..<1_000, width: 1) { number in
            made.withLock { $0 += 1 }
            return ClosureOperation<Int, Flaw> { () throws(Flaw) in
                if number == 5 { throw .first }
                return number
            }
        }
        await group.startAndEnd()
        #expect(group.outcome?.error?.underlyingError as? Flaw == .first && made.withLock { $0 } == 6)
    }

    @Test func `a group supports queues, dependencies, owners and mapResult like any operation`() async throws {
        let queue = QueueManager("host", width: 1)
        let owner = Witness()
        let (before, inside) = (ClosureOperation { 1 }, child(0))
        let group = GroupOperation { group in try await group.run(inside) }.named("group")
        try group.depend(on: before, otherwise: .cancel)
        group.owner = .object(owner)
        try queue.add([before, group])
        await executing([inside])
        #expect(group.waitReason?.kind == .children)
        #expect(queue.explain(group).contains("waiting for its children"))
        let after = group.mapResult { $0 + 1 }
        inside.finish(withResult: 4)
        #expect(try await after.run() == 5)
        // The queue is notified after the operations that wait for the group.
        await queue.drained()
        #expect(queue.counts.finished == 3)
    }

    private func failing() -> ClosureOperation<Int, any Error> { ClosureOperation { throw Flaw.first } }

    @Test func `the failure of a mapped child names its original`() async {
        let group = GroupOperation.all([failing().mapResult { "\($0)" }])
        await group.startAndEnd()
        #expect(group.outcome?.error?.child?.name == "ClosureOperation")
    }

    @Test func `the failure of a map names the index and the element, truncated to 80 characters`() async {
        let elements = ["a", "b", String(repeating: "word ", count: 40)]
        let group = GroupOperation.map(elements, width: 1) { element in
            ClosureOperation { () throws -> Int in
                if element.count > 1 { throw Flaw.first }
                return 1
            }
        }
        await group.startAndEnd()
        let text = "ClosureOperation, element 2 (\(String(repeating: "word ", count: 16)))"
        #expect(group.outcome?.error?.child?.name == text)
    }

    private struct User { var password = "hunter2" }
    private enum Size { case large }

    private static let namedElements: [(element: any Sendable, name: String)] = [
        (17, " (17)"), (1.5, " (1.5)"), (true, " (true)"), ("files/a b.txt", " (files/a b.txt)"),
        (Size.large, " (large)"),
        (User(), " (User)"), (["token": "hunter2"], " (Dictionary<String, String>)"),
        (URL(string: "https://ada:hunter2@host/f?token=hunter2#x"), " (https://host/f)"),
        ("https://host/f?token=hunter2", " (https://host/f)"), ("token=hunter2", ""), ("Bearer abc", ""),
        ("token: hunter2", ""), ("ada:hunter2", ""), ("a token%3Dhunter2", ""),
        (URL(string: "data:text/plain,hunter2"), ""),
        ("sk" + String(repeating: "a1", count: 20), ""), ("ada@example.com", ""),
        (URL(string: "https://host/" + String(repeating: "a1", count: 20)), " (…://host/…)"),
    ]

    @Test(arguments: namedElements.indices)
    func `a failure names an element only if it cannot reveal a secret`(index: Int) async {
        let (element, name) = Self.namedElements[index]
        let group = GroupOperation.map([element], width: 1) { _ in failing() }
        await group.startAndEnd()
        #expect(group.outcome?.error?.child?.name == "ClosureOperation, element 0\(name)")
    }

    @Test func `an operation describes how it ended, and toggle() switches its state`() async {
        let succeeded = HandDriven(), failed = HandDriven(), cancelled = HandDriven()
        for operation in [succeeded, failed, cancelled] {
            #expect(operation.toggle() == .executing)
            #expect(operation.toggle() == .suspended)
            #expect(operation.toggle() == .executing)
        }
        succeeded.finish(withResult: 1)
        failed.finish(withError: .first)
        cancelled.cancel()
        #expect([succeeded, failed, cancelled].map(\.isSuccessful) == [true, false, false])
        #expect([succeeded, failed, cancelled].map(\.isFailed) == [false, true, false])
        #expect([succeeded, failed, cancelled].map(\.stateDescription) == ["succeeded", "failed", "cancelled"])
        let group = GroupOperation.all([HandDriven(hooks: .init(main: { $0.finish(withResult: 1) }))])
        #expect(group.toggle() == .executing || group.isSuccessful)
        await group.ended()
        #expect(group.toggle() == .finished)
    }
}
