// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// The recovery of children that have no result.
@Suite(.nothingStaysAlive, .timeLimit(.minutes(1)))
struct GroupRecoveryTests {
    private func failing(_ name: String, _ flaw: Flaw = .first) -> ClosureOperation<Int, Flaw> {
        ClosureOperation<Int, Flaw> { () throws(Flaw) -> Int in throw flaw }.named(name)
    }

    @Test func `a recovery value replaces the result of a child in each kind of declared group`() async throws {
        let (array, tuple) = (
            GroupOperation.all([failing("a"), failing("b")]), GroupOperation.all(failing("c"), text())
        )
        array.recover { (failed: FailedChild<Int>) in .result(failed.name == "a" ? 1 : 2) }
        tuple.recover { (failed: FailedChild<Int>) in .result(3) }
        tuple.recover { (failed: FailedChild<String>) in .result("four") }
        #expect(try await array.run() == [1, 2])
        let (three, four) = try await tuple.run()
        #expect(three == 3 && four == "four")
        let map = GroupOperation.map(0..<50, width: 3) { number in
            number % 2 == 0 ? failing("\(number)") : ClosureOperation<Int, Flaw> { () throws(Flaw) -> Int in number }
        }
        map.recover { (failed: FailedChild<Int>) in .result(Int(failed.name) ?? -1) }
        #expect(try await map.run() == Array(0..<50))
        let quorum = GroupOperation.quorum(2, of: [failing("0"), failing("1"), failing("2")], width: 1)
        quorum.recover { (failed: FailedChild<Int>) in .result(Int(failed.name) ?? -1) }
        // While one child is recovered, the next one continues.
        let two = try await quorum.run()
        #expect(two.count == 2 && two[0] < two[1])
        let outcomes = GroupOperation.outcomes(of: [failing("0"), failing("1")])
        outcomes.recover { (failed: FailedChild<Int>) in failed.name == "0" ? .fail : .result(7) }
        outcomes.start()
        #expect(await outcomes.finalOutcome.result == [.failure(.first), .success(7)])
    }

    private func text() -> ClosureOperation<String, Flaw> {
        ClosureOperation<String, Flaw> { () throws(Flaw) -> String in throw .second }
    }

    @Test func `a hook that is added after the end of the group does not keep the group alive`() async throws {
        let group = GroupOperation.all([ClosureOperation { 1 }])
        #expect(try await group.run() == [1])
        group.recover { (failed: FailedChild<Int>) in group.isCancelled ? .fail : .result(2) }
    }

    @Test func `a child can be replaced by other operations as often as the limit allows`() async throws {
        let seen = EventRecorder<String>()
        let group = GroupOperation.all([failing("work")], width: 1)
        group.recover(atMost: 3) { (failed: FailedChild<Int>) in
            seen.record("\(failed.name) \(failed.attempt) \(failed.error(as: Flaw.self) == .first)")
            return failed.attempt < 3
                ? .operation(ClosureOperation<Int, any Error> { throw Flaw.second })
                : .operation(ClosureOperation { 9 })
        }
        #expect(try await group.run() == [9])
        #expect(seen.events == ["work 1 true", "work 2 false", "work 3 false"])
        let other = GroupOperation.all([failing("work")])
        other.recover(atMost: 2) { (failed: FailedChild<Int>) in .operation(failing("again", .second)) }
        await other.startAndEnd()
        let child = other.outcome?.error?.child
        #expect(child?.name == "work" && child?.failure.underlyingFlaw == .first)
        #expect(child?.recoveryFailure?.underlyingFlaw == .second)
        #expect(
            "\(other.outcome!.error!)".contains(
                "work, a child of the group, failed: first; its recovery failed: second"))
    }

    @Test func `a child in recovery takes up no slot, and the group continues`() async throws {
        let (gate, order) = (Gate(), EventRecorder<Int>())
        let last = ClosureOperation<Int, Flaw> { () throws(Flaw) -> Int in
            order.record(2)
            gate.open()
            return 2
        }
        let group = GroupOperation.all([failing("1"), last], width: 1, on: QueueManager("one", width: 1))
        group.recover { (failed: FailedChild<Int>) in
            await gate.passage()
            return .operation(
                ClosureOperation {
                    order.record(1)
                    return 1
                })
        }
        #expect(try await group.run() == [1, 2])
        #expect(order.events == [2, 1])
    }

    @Test func `children in recovery count against the width of a map`() async throws {
        let gate = Gate()
        let made = Locked(0)
        let asked = Locked(0)
        let group = GroupOperation.map(0..<20, width: 2) { number in
            made.withLock { $0 += 1 }
            return failing("\(number)")
        }
        group.recover { (failed: FailedChild<Int>) in
            asked.withLock { $0 += 1 }
            await gate.passage()
            return .result(1)
        }
        group.start()
        while asked.withLock({ $0 }) < 2 { await Task.yield() }
        for _ in 0..<1_000 { await Task.yield() }
        #expect(made.withLock { $0 } == 2)
        gate.open()
        #expect(try await group.value.count == 20)
    }

    @Test func `in a body, hooks recover one child or all, and a recovered child is no failure`() async throws {
        let children = ["one", "two", "three", "four"].map { failing($0) }
        let group = GroupOperation<Void, GroupFailure> { group in
            let one: Int = try await group.run(children[0], by: { _ in .result(1) })
            let two: Int = try await group.run(children[1])
            try group.add(children[2])
            _ = try? await group.run(children[3], by: { _ in .fail })
            throw Flaw.converted("\(one + two)")
        }
        group.recover { (failed: FailedChild<Int>) in .result(2) }
        await group.startAndEnd()
        let error = group.outcome?.error
        let thrown = error?.underlyingError as? Flaw
        #expect(thrown == .converted("3") && error?.child == nil)
        let names: [String] = error?.siblings.map { $0.name } ?? []
        #expect(names == ["four"])
    }

    @Test func `a synchronous body waits for the recovery of a child`() async throws {
        let (first, second) = (failing("one"), failing("two"))
        let group = GroupOperation<Int, GroupFailure>(synchronous: { group in
            let one: Int = try group.perform(first, by: { _ in .operation(ClosureOperation { 1 }) })
            return try one + group.perform(second)
        })
        group.recover { (failed: FailedChild<Int>) in
            await Task.yield()
            return .result(2)
        }
        let queue = QueueManager("one", width: 1)
        try queue.add(group)
        #expect(try await group.value == 3)
    }

    @Test func `if a hook throws an error, the child fails and both errors are reported`() async throws {
        let group = GroupOperation.all([failing("work")])
        group.recover { (failed: FailedChild<Int>) in throw Flaw.converted("no way") }
        await group.startAndEnd()
        let child = group.outcome?.error?.child
        #expect(
            child?.failure.underlyingFlaw == .first && child?.recoveryFailure?.underlyingFlaw == .converted("no way"))
    }

    @Test func `an operation that was already started cannot replace a child, and the error says why`() async throws {
        let taken = HandDriven("taken")
        taken.start()
        let group = GroupOperation.all([failing("work")])
        group.recover { (failed: FailedChild<Int>) in .operation(taken) }
        await group.startAndEnd()
        let reason = group.outcome?.error?.child?.recoveryFailure
        guard case .failed(let error as OperationSetupError) = reason else {
            return unmet("\(String(describing: reason))")
        }
        #expect(error.code == .alreadyStarted)
        taken.finish(withResult: 1)
    }

    @Test(arguments: [true, false])
    func `a group canceled during a recovery ends immediately and ignores the result of the hook`(hasBody: Bool) async {
        let (asked, gate) = (Gate(), Gate())
        let late = HandDriven("late")
        let group =
            hasBody
            ? GroupOperation<[Int], GroupFailure> { group in [try await group.run(failing("work"))] }
            : GroupOperation.all([failing("work")])
        group.recover { (failed: FailedChild<Int>) in
            asked.open()
            await gate.passage()
            return .operation(late)
        }
        group.start()
        await asked.passage()
        #expect(!group.isFinished)
        await group.cancelAndEnd(because: .requested("enough"))
        #expect(group.cancellationCause == .requested("enough") && !gate.isOpen)
        gate.open()
        for _ in 0..<1_000 { await Task.yield() }
        #expect(late.state == .notStarted)
    }

    @Test func `a child that is canceled with the task that waits for it is not recovered`() async {
        let (slow, asked) = (HandDriven("slow"), EventRecorder<String>())
        let group = GroupOperation<Int, GroupFailure> { [self] group in
            async let number = group.run(slow)
            while slow.state != .executing { await Task.yield() }
            _ = try await group.run(failing("bad"))
            return try await number
        }
        group.recover { (failed: FailedChild<Int>) in
            asked.record(failed.name)
            return .fail
        }
        await group.startAndEnd()
        #expect(slow.cancellationCause?.code == .taskCancelled)
        #expect(asked.events == ["bad"] && group.outcome?.error?.child?.name == "bad")
    }

    @Test(arguments: [true, false])
    func `a recovery ends immediately, with its operation, when no task waits for it`(isAsking: Bool) async {
        let (gate, asked) = (Gate(), EventRecorder<Int>())
        let standIn = HandDriven("instead")
        let group = GroupOperation<Int, GroupFailure> { [self] group in
            let waiting = Task { try await group.run(failing("work")) }
            while isAsking ? asked.count == 0 : standIn.state != .executing { await Task.yield() }
            waiting.cancel()
            return (try? await waiting.value) ?? 7
        }
        group.recover(atMost: 3) { (failed: FailedChild<Int>) in
            asked.record(failed.attempt)
            if isAsking { await gate.passage() }
            return .operation(standIn)
        }
        group.start()
        #expect(await group.finalOutcome.result == 7)
        #expect(asked.events == [1] && standIn.isCancelled == !isAsking)
        gate.open()
    }

    @Test func `the hook is never called for children that are canceled because of a failing child`() async throws {
        let (asked, gate) = (EventRecorder<String>(), Gate())
        let culprit = HandDriven("culprit")
        let others = (0..<3).map { HandDriven("\($0)", windsDown: true) }
        let dependent = HandDriven("dependent")
        try dependent.depend(on: culprit, otherwise: .cancel)
        let group = GroupOperation.all([culprit, dependent] + others)
        group.recover { (failed: FailedChild<Int>) in
            asked.record(failed.name)
            gate.open()
            return .fail
        }
        group.start()
        for child in [culprit] + others { while child.state != .executing { await Task.yield() } }
        culprit.finish(withError: .first)
        await dependent.ended()
        for child in others {
            while !child.isCancelled { await Task.yield() }
            child.finish(withError: .second)
        }
        await group.ended()
        #expect(asked.events.isEmpty || asked.events == ["culprit"])
        #expect(group.outcome?.error?.child?.name == "culprit")
    }

    @Test func `a failing sibling ends a running recovery, and the error names both children`() async throws {
        let (asked, gate) = (Gate(), Gate())
        let sibling = HandDriven("sibling")
        let group = GroupOperation(policy: .failFast)
        try group.add([failing("work"), sibling])
        group.recover { (failed: FailedChild<Int>) in
            guard failed.name == "work" else { return .fail }
            asked.open()
            await gate.passage()
            return .result(1)
        }
        group.start()
        await asked.passage()
        while sibling.state != .executing { await Task.yield() }
        sibling.finish(withError: .second)
        await group.ended()
        let error = group.outcome?.error
        #expect(error?.child?.name == "sibling" && error?.siblings.map(\.name) == ["work"])
        gate.open()
    }

    @Test func `a shielded child is recovered although the group is canceled`() async throws {
        let child = HandDriven("kept")
        let again = HandDriven("again")
        let group = GroupOperation(policy: .failFast)
        try group.add(child, isShielded: true)
        group.recover { (failed: FailedChild<Int>) in .operation(again) }
        await group.start(untilExecuting: child)
        group.cancel()
        child.finish(withError: .first)
        while again.state != .executing { await Task.yield() }
        #expect(!group.isFinished && !again.isCancelled)
        again.finish(withResult: 1)
        await group.ended()
        #expect(group.isCancelled)
    }

    @Test func `a group that replaces a child is canceled with the group around it`() async throws {
        let inner = HandDriven("inner")
        let work = failing("work")
        let group = GroupOperation<Int, GroupFailure> { group in try await group.run(work) }.named("outer")
        group.recover { (failed: FailedChild<Int>) in
            .operation(GroupOperation<Int, GroupFailure> { group in try await group.run(inner) }.named("spare"))
        }
        await group.start(untilExecuting: inner)
        await group.cancelAndEnd()
        #expect(inner.cancellationCause?.path == ["outer", "spare"])
    }
}

extension OperationFailure where ErrorType == any Error {
    fileprivate var underlyingFlaw: Flaw? { if case .failed(let error) = self { error as? Flaw } else { nil } }
}
