// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct StatesTests {
    private func states(
        of operation: ManagedOperation, during life: () -> Void
    ) async -> [OperationState] {
        let iterator = operation.states.makeAsyncIterator()
        life()
        var states: [OperationState] = []
        while let state = await iterator.next() { states.append(state) }
        return states
    }

    @Test func `the last element of states matches each kind of end`() async {
        let failed = HandDriven(), cancelled = HandDriven(), early = HandDriven(), kept = HandDriven()
        #expect(
            await states(of: failed) {
                failed.start()
                failed.finish(withError: .first)
            } == [.notStarted, .executing, .finished])
        #expect(
            await states(of: cancelled) {
                cancelled.start()
                cancelled.cancel()
            } == [.notStarted, .executing, .cancelled])
        #expect(await states(of: early) { early.cancel() } == [.notStarted, .cancelled])
        #expect(
            await states(of: kept) {
                kept.finish(withResult: 1)
                kept.start()
            } == [.notStarted, .finished])
        let silent = SyncProbe { _ in }
        #expect(await states(of: silent) { silent.start() } == [.notStarted, .executing, .cancelled])
    }

    @Test func `the states sequence begins with the current state`() async {
        let operation = HandDriven.started()
        #expect(await states(of: operation) { operation.finish(withResult: 1) } == [.executing, .finished])
        #expect(await states(of: operation) {} == [.finished])
        let cancelled = HandDriven()
        cancelled.cancel()
        #expect(await states(of: cancelled) {} == [.cancelled])
    }

    @Test func `each change resumes a reader that awaits the next state`() async {
        let operation = HandDriven(), seen = EventRecorder<OperationState>()
        let reader = Task {
            for await state in operation.states { seen.record(state) }
        }
        _ = await seen.events(atLeast: 1)
        operation.start()
        _ = await seen.events(atLeast: 2)
        operation.suspend()
        _ = await seen.events(atLeast: 3)
        operation.cancel()
        await reader.value
        #expect(seen.events == [.notStarted, .executing, .suspended, .cancelled])
    }

    @Test func `several readers each see all states`() async {
        let operation = HandDriven()
        let first = operation.states.makeAsyncIterator(), second = operation.states.makeAsyncIterator()
        operation.startAndFinish(withResult: 1)
        for expected in [OperationState.notStarted, .executing, .finished] {
            #expect(await first.next() == expected)
            #expect(await second.next() == expected)
        }
        #expect(await first.next() == nil)
        #expect(await second.next() == nil)
    }

    @Test func `canceling the reading task ends the sequence but not the operation`() async {
        let operation = HandDriven(), seen = EventRecorder<OperationState>()
        let reader = Task {
            for await state in operation.states { seen.record(state) }
        }
        _ = await seen.events(atLeast: 1)
        reader.cancel()
        await reader.value
        #expect(seen.events == [.notStarted])
        #expect(operation.state == .notStarted)
        operation.start()
        #expect(seen.events == [.notStarted])
    }

    @Test func `the states sequence does not keep the operation alive and ends when it is freed`() async {
        let census = LiveObjects()
        var operation: HandDriven? = census.track(HandDriven())
        var iterator = operation?.states.makeAsyncIterator()
        #expect(await iterator?.next() == .notStarted)
        operation = nil
        #expect(census.count == 0)
        #expect(await iterator?.next() == nil)
        iterator = nil
    }

    @Test func `the states sequence of an executing operation ends when the operation is freed`() async {
        var operation: HandDriven? = HandDriven()
        var iterator = operation?.states.makeAsyncIterator()
        operation?.start()
        operation = nil
        #expect(await iterator?.next() == .notStarted)
        #expect(await iterator?.next() == .executing)
        #expect(await iterator?.next() == nil)
        iterator = nil
    }
}
