// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Conditions", .timeLimit(.minutes(3)))
struct ConditionTests {
    private let events = EventRecorder<String>()
    private typealias Verdict = OperationCondition.Verdict

    /// Records its evaluation, waits for the gate, and returns the verdict.
    private func recording(
        _ name: String, _ events: EventRecorder<String>, behind gate: Gate? = nil, verdict: Verdict = .satisfied
    ) -> OperationCondition {
        OperationCondition(name) { _ in
            events.record(name)
            await gate?.passage()
            return verdict
        }
    }

    @Test(arguments: StartingWay.allCases)
    func `conditions are evaluated after the last dependency and before the body`(way: StartingWay) async throws {
        let upstream = HandDriven("upstream")
        let operation = ClosureOperation<Void, Never> { events.record("body") }
        operation.addCondition(recording("first", events))
        operation.addCondition(recording("second", events))
        operation.addDependency(upstream)
        let starter = Starter(way)
        try starter.start(operation)
        #expect(events.events == [])
        events.record("dependency ends")
        upstream.startAndFinish(withResult: 1)
        await operation.ended()
        #expect(events.events == ["dependency ends", "first", "second", "body"])
        #expect(operation.conditions.map(\.name) == [])
    }

    @Test(
        "A failed condition cancels the operation with a message that names condition and reason",
        arguments: StartingWay.allCases)
    func failure(way: StartingWay) async throws {
        let operation = ClosureOperation<Void, Never> { events.record("body") }
        operation.addCondition("network") { _ in .failed("there is none") }
        operation.addCondition(recording("second", events))
        let starter = Starter(way)
        try starter.start(operation)
        await operation.ended()
        #expect(events.events == [])
        #expect(operation.cancellationCause?.code == .conditionFailed)
        #expect(
            operation.cancellationCause?.message
                == "The operation was canceled because its condition \"network\" failed: there is none.")
    }

    @Test(arguments: StartingWay.allCases, [false, true])
    func `an outcome that is set while a condition is evaluated ends the operation immediately`(
        way: StartingWay, isCancelled: Bool
    ) async throws {
        let asked = Gate(), stopped = Gate(), never = Gate()
        let operation = HandDriven()
        operation.addCondition("endless") { _ in
            asked.open()
            if isCancelled { await stopped.openedByCancellation() } else { await never.passage() }
            return .satisfied
        }
        let starter = Starter(way)
        try starter.start(operation)
        await asked.passage()
        if isCancelled { operation.cancel() } else { operation.finish(withResult: 7) }
        await operation.ended()
        if isCancelled { await stopped.passage() }
        #expect(isCancelled ? operation.cancellationCause == .requested : operation.outcome?.result == 7)
        #expect(!operation.calls.events.contains("main"))
        never.open()
    }

    @Test
    func `in a QueueManager, conditions are evaluated again after a dependency that is added meanwhile`() async throws {
        let gate = Gate()
        let late = HandDriven("late")
        let operation = ClosureOperation<Void, Never> { events.record("body") }
        operation.addCondition(recording("condition", events, behind: gate))
        let starter = Starter(.queueManager)
        try starter.start(operation)
        _ = await events.events(atLeast: 1)
        try operation.depend(on: late, otherwise: .runAnyway)
        gate.open()
        events.record("late ends")
        late.startAndFinish(withResult: 1)
        await operation.ended()
        #expect(events.events == ["condition", "late ends", "condition", "body"])
    }

    @Test func `a failed verdict from before the last dependency ended is ignored`() async throws {
        let gate = Gate(), asked = Gate()
        let late = HandDriven("late")
        let operation = ClosureOperation<Int, Never> { 1 }
        operation.addCondition("late succeeded") { context in
            asked.open()
            await gate.passage()
            return context.dependencies.isEmpty ? .failed("there is no dependency") : .satisfied
        }
        let starter = Starter(.queueManager)
        try starter.start(operation)
        await asked.passage()
        try operation.depend(on: late, otherwise: .runAnyway)
        gate.open()
        late.startAndFinish(withResult: 1)
        await operation.ended()
        #expect(operation.outcome?.word == "success 1")
    }

    @Test func `outside queues, a dependency added during the evaluation is refused`() async throws {
        let gate = Gate(), asked = Gate()
        let operation = ClosureOperation<Int, Never> { 1 }
        operation.addCondition("condition") { _ in
            asked.open()
            await gate.passage()
            return .satisfied
        }
        operation.start()
        await asked.passage()
        let error = #expect(throws: OperationSetupError.self) {
            try operation.depend(on: HandDriven(), otherwise: .runAnyway)
        }
        #expect(error?.code == .alreadyStarted)
        gate.open()
        await operation.ended()
        #expect(operation.outcome?.word == "success 1")
    }

    @Test func `a waiting condition takes no slot of a QueueManager but one of an OperationQueue`() async throws {
        let gate = Gate()
        let held = ClosureOperation<Void, Never> {}
        held.addCondition("gate") { _ in
            await gate.passage()
            return .satisfied
        }
        let manager = QueueManager("slots", width: 1)
        try manager.add(held)
        let other = ClosureOperation<Void, Never> {}
        try manager.add(other)
        await other.ended()
        #expect(!held.isFinished)

        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        let asked = Gate()
        let first = ClosureOperation<Void, Never> { events.record("first") }
        first.addCondition("gate") { _ in
            asked.open()
            await gate.passage()
            return .satisfied
        }
        let second = ClosureOperation<Void, Never> { events.record("second") }
        for operation in [first, second] { queue.addOperation(operation) }
        await asked.passage()
        gate.open()
        await second.ended()
        await held.ended()
        #expect(events.events == ["first", "second"])
    }

    @Test func `conditions, categories and throttles set after the start have no effect and report notices`() async {
        let notices = NoticeHub.recorder(for: "late condition")
        let operation = HandDriven("late condition")
        operation.start()
        operation.addCondition("never") { _ in .failed("it must not be looked at") }
        operation.categories = [OperationCategory("late")]
        operation.throttle = ThrottleRule(key: "late", interval: .seconds(1))
        #expect(notices.events.map(\.kind) == [.admission, .admission, .admission])
        #expect(operation.conditions.isEmpty && operation.categories.isEmpty && operation.throttle == nil)
        operation.finish(withResult: 1)
    }
}

@Suite("Combined conditions", .timeLimit(.minutes(3)))
struct CombinedConditionTests {
    private let good = OperationCondition("good") { _ in .satisfied }
    private let bad = OperationCondition("bad") { _ in .failed("it is bad") }
    private let context = OperationCondition.Context(operation: "test", dependencies: [])

    @Test func `not, all and any combine verdicts and names`() async {
        #expect(await OperationCondition.all([good, good]).evaluate(context) == .satisfied)
        #expect(await OperationCondition.all([good, bad]).evaluate(context) == .failed("it is bad"))
        #expect(await OperationCondition.any([bad, good]).evaluate(context) == .satisfied)
        #expect(await OperationCondition.any([bad, bad]).evaluate(context) == .failed("it is bad, and it is bad"))
        #expect(await OperationCondition.not(bad).evaluate(context) == .satisfied)
        #expect(await OperationCondition.not(good).evaluate(context) == .failed("good is satisfied"))
        #expect(await OperationCondition.all([]).evaluate(context) == .satisfied)
        #expect(await OperationCondition.any([]).evaluate(context) == .failed("there are no conditions"))
        #expect(OperationCondition.any([good, bad]).name == "good or bad")
        #expect(OperationCondition.not(good).name == "not good")
    }

    @Test func `combined conditions skip the evaluation of conditions that cannot change the verdict`() async {
        let seen = EventRecorder<String>()
        let watched = OperationCondition("watched") { _ in
            seen.record("seen")
            return .satisfied
        }
        _ = await OperationCondition.all([bad, watched]).evaluate(context)
        _ = await OperationCondition.any([good, watched]).evaluate(context)
        #expect(seen.count == 0)
    }

    @Test func `combining 100,000 conditions does not overflow the stack`() async {
        let all = OperationCondition.all(Array(repeating: good, count: 100_000))
        #expect(await all.evaluate(context) == .satisfied)
    }

    @Test func `dependenciesSucceeded checks the outcomes of dependencies`() async throws {
        let failed = HandDriven("failed"), cancelled = HandDriven("cancelled"), fine = HandDriven("fine")
        for upstream in [failed, cancelled, fine] { upstream.start() }
        failed.finish(withError: .first)
        cancelled.cancel()
        fine.finish(withResult: 1)
        func verdict(_ upstream: HandDriven) async -> OperationCondition.Verdict {
            await OperationCondition.dependenciesSucceeded.evaluate(
                OperationCondition.Context(operation: "test", dependencies: [fine, upstream]))
        }
        #expect(await verdict(fine) == .satisfied)
        #expect(await verdict(failed) == .failed("failed failed"))
        #expect(await verdict(cancelled) == .failed("cancelled was canceled"))
    }

    @Test(arguments: StartingWay.allCases)
    func `the conditions of an operation see its finished dependencies`(way: StartingWay) async throws {
        let upstream = HandDriven("upstream")
        let operation = ClosureOperation<Int, Never> { 1 }
        operation.addCondition(.dependenciesSucceeded)
        operation.addDependency(upstream)
        let starter = Starter(way)
        try starter.start(operation)
        upstream.start()
        upstream.finish(withError: .first)
        await operation.ended()
        #expect(operation.cancellationCause?.code == .conditionFailed)
        #expect(operation.cancellationCause?.message.contains("upstream failed") == true)
    }
}
