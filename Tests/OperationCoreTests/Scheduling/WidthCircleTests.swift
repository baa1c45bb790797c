// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// A child that waits for a sibling that cannot start because the width of the group is used up.
///
/// Without an error or a notice, each of these tests would wait forever.
@Suite("Waits for a sibling that cannot start because of the group's width", .timeLimit(.minutes(3)))
struct WidthCircleTests {
    /// Returns whether the operation ends within some seconds, and cancels it if it does not.
    private func ends(_ operation: ManagedOperation) async -> Bool {
        let hasEnded = await eventually { operation.isFinished }
        if !hasEnded { operation.cancel() }
        return hasEnded
    }

    private func named<Kind: ManagedOperation>(_ name: String, _ operation: Kind) -> Kind {
        operation.name = name
        return operation
    }

    /// Creates an operation whose task records the error that it catches and then returns 1.
    private func catching(
        _ name: String, _ errors: EventRecorder<any Error>, _ body: @escaping @Sendable () async throws -> Void
    ) -> Body {
        named(
            name,
            Body {
                do { try await body() } catch { errors.record(error) }
                return 1
            })
    }

    enum Call: CaseIterable {
        case startAndWait, value, run, scope
    }

    /// Creates a child that waits for another operation.
    private func child(
        _ name: String, waitingFor other: Closure, by call: Call, _ errors: EventRecorder<any Error>,
        in scope: GroupScope
    ) -> ManagedOperation {
        switch call {
        case .startAndWait: blocking(name, errors) { _ = try other.startAndWait() }
        case .value: catching(name, errors) { _ = try await other.value }
        case .run: catching(name, errors) { _ = try await other.run() }
        case .scope: catching(name, errors) { _ = try await scope.run(other) }
        }
    }

    @Test(
        "If all children that fill the width wait for the next child, one gets an error",
        arguments: [1, 2], Call.allCases)
    func fullLine(width: Int, call: Call) async throws {
        let errors = EventRecorder<any Error>()
        let last = named("last", Closure { 3 })
        let group = GroupOperation<Int, GroupFailure>(width: width) { group in
            let first = (0..<width).map { child("child \($0)", waitingFor: last, by: call, errors, in: group) }
            try group.add(first + (call == .scope ? [] : [last]))
            return 2
        }
        group.start()
        #expect(await ends(group))
        #expect(group.outcome?.result == 2)
        #expect((1...width).contains(errors.events.count))
        #expect(errors.events.allSatisfy { isCircle($0, "child 0", "last") || isCircle($0, "child 1", "last") })
        // Only the wait fails, unless the waiting child itself runs the other operation.
        if call != .scope { #expect(last.outcome?.result == 3) }
    }

    @Test(arguments: [true, false])
    func `a wait that cannot end, in a call that cannot throw, is reported as a notice`(isBlocking: Bool) async throws {
        let errors = EventRecorder<any Error>()
        let last = named("last of \(isBlocking)", Closure { 3 })
        let notices = NoticeHub.recorder(for: "last of \(isBlocking)")
        let first: ManagedOperation =
            isBlocking
            ? blocking("first", errors) { last.waitUntilFinished() } : catching("first", errors) { await last.ended() }
        let group = GroupOperation(policy: .collectAll, width: 1)
        try group.add([first, last])
        group.start()
        #expect(await eventually { notices.events.count == 1 })
        #expect(notices.events.first?.kind == .waitsForItself)
        #expect(notices.events.first?.message.contains("first → last of \(isBlocking) → first") == true)
        let queue = QueueManager("asked")
        #expect(
            queue.explain(last).hasSuffix(
                ": its group runs at most 1 child at a time (held by first)."), "\(queue.explain(last))")
        last.cancel()
        #expect(await ends(group))
    }

    @Test func `a grandchild that waits for the next child of the outer group gets an error`() async throws {
        let errors = EventRecorder<any Error>()
        let last = named("last", Closure { 3 })
        let inTask = catching("in a task", errors) { _ = try await last.value }
        let onThread = blocking("on a thread", errors) { _ = try last.startAndWait() }
        let inner = named("inner", GroupOperation.all([GroupOperation.all([inTask]), GroupOperation.all([onThread])]))
        let group = GroupOperation(policy: .failFast, width: 1)
        try group.add([inner, last])
        group.start()
        #expect(await ends(group))
        #expect(errors.events.count == 2)
        #expect(errors.events.contains { isCircle($0, "in a task", "last", "inner") })
        #expect(errors.events.contains { isCircle($0, "on a thread", "last", "inner") })
        #expect(last.outcome?.result == 3)
    }

    @Test func `the body of an inner group that runs a child of the outer group gets an error`() async throws {
        let last = named("last", Closure { 3 })
        let group = GroupOperation<Int, GroupFailure>(width: 1) { outer in
            let inner = GroupOperation<Int, GroupFailure> { _ in
                do { return try await outer.run(last) } catch { return isCircle(error, "inner", "last") ? 1 : 2 }
            }.named("inner")
            return try await outer.run(inner)
        }
        group.start()
        #expect(await ends(group))
        #expect(group.outcome?.result == 1)
    }

    @Test(
        "A map whose sequence waits for a sibling fails if the map fills the width of the group",
        arguments: [Call.value, .run, .scope])
    func asynchronousSource(call: Call) async throws {
        let (page, isAdded) = (named("page", Closure { 1 }), Gate())
        let group = GroupOperation<[Int], GroupFailure>(width: 1) { outer in
            let numbers = AsyncThrowingStream<Int, any Error> {
                // The wait must not start the operation before it is a child.
                if call != .scope { await isAdded.passage() }
                switch call {
                case .startAndWait, .value: _ = try await page.value
                case .run: _ = try await page.run()
                case .scope: _ = try await outer.run(page)
                }
                return nil
            }
            let map = GroupOperation.map(numbers, width: 2) { number in Closure { number } }.named("map")
            if call != .scope {
                try outer.add([map, page])
                isAdded.open()
                return try await map.value
            }
            return try await outer.run(map)
        }
        group.start()
        #expect(await ends(group))
        let failure = try #require(group.outcome?.error)
        #expect(isCircle(failure, "map", "page"))
    }

    @Test(arguments: Call.allCases)
    func `a child that waits while another child can still end gets no error`(call: Call) async throws {
        let (errors, clock) = (EventRecorder<any Error>(), ManualClock())
        let other = HandDriven("other")
        let last = named("last", Closure { 3 })
        last.clock = clock
        let group = GroupOperation<Int, GroupFailure>(width: 2) { group in
            // Added together, because a child that waits for an operation outside all groups starts it.
            let waiting = child("waiting", waitingFor: last, by: call, errors, in: group)
            try group.add(call == .scope ? [other, waiting] : [other, waiting, last])
            return 2
        }
        group.start()
        #expect(await eventually { clock.pendingCount == 1 && other.isExecuting })
        for _ in 0..<8 { clock.advance(by: .seconds(60)) }
        #expect(errors.events.isEmpty && !last.isFinished)
        other.finish(withResult: 1)
        #expect(await ends(group))
        #expect(errors.events.isEmpty && last.outcome?.result == 3 && clock.pendingCount == 0)
    }

    @Test func `a waiting child of a suspended group gets no error if the group can resume`() async throws {
        let (errors, clock) = (EventRecorder<any Error>(), ManualClock())
        let gate = Gate()
        let last = named("last", Closure { 3 })
        last.clock = clock
        let first = blocking("first", errors) {
            gate.wait()
            _ = try last.startAndWait()
        }
        let group = GroupOperation(policy: .failFast, width: 2)
        try group.add(first)
        group.start()
        #expect(await eventually { first.isExecuting })
        group.suspend()
        try group.add(last)
        gate.open()
        #expect(await eventually { clock.pendingCount == 1 })
        for _ in 0..<8 { clock.advance(by: .seconds(60)) }
        #expect(errors.events.isEmpty && !last.isFinished)
        group.resume()
        #expect(await ends(group))
        #expect(errors.events.isEmpty && last.outcome?.result == 3)
    }

    @Test func `a waiting child gets no error if its sibling only waits for a suspended queue`() async throws {
        let (errors, clock) = (EventRecorder<any Error>(), ManualClock())
        let gate = Gate(), queue = QueueManager("suspended", width: 1)
        let last = named("last", Closure { 3 }), second = HandDriven("second")
        last.clock = clock
        let first = blocking("first", errors) {
            gate.wait()
            _ = try last.startAndWait()
        }
        let group = GroupOperation(policy: .failFast, width: 2, on: queue)
        try group.add([first, second, last])
        group.start()
        #expect(await eventually { first.isExecuting })
        queue.isSuspended = true
        gate.open()
        #expect(await eventually { clock.pendingCount == 1 })
        for _ in 0..<8 { clock.advance(by: .seconds(60)) }
        #expect(errors.events.isEmpty && !last.isFinished)
        queue.isSuspended = false
        #expect(await eventually { second.isExecuting })
        second.finish(withResult: 1)
        #expect(await ends(group))
        #expect(errors.events.isEmpty && last.outcome?.result == 3)
    }

    @Test(arguments: [true, false])
    func `a circular wait that arises while a task already waits is detected later`(isEnded: Bool) async throws {
        let (errors, clock) = (EventRecorder<any Error>(), ManualClock())
        let name = "last, later \(isEnded)"
        let last = named(name, Closure { 3 })
        let notices = NoticeHub.recorder(for: name)
        last.clock = clock
        let first = catching("first", errors) {
            if isEnded { await last.ended() } else { _ = try await last.value }
        }
        let group = GroupOperation(policy: .collectAll, width: 1)
        try group.add(first)
        group.start()
        #expect(await eventually { clock.pendingCount == 1 })
        clock.advance(by: .seconds(1))
        #expect(clock.pendingCount == 1 && errors.events.isEmpty && notices.events.isEmpty)
        try group.add(last)
        clock.advance(by: .seconds(2))
        if isEnded {
            #expect(await eventually { notices.events.count == 1 })
            last.cancel()
        } else {
            #expect(await eventually { errors.events.count == 1 })
            #expect(errors.events.allSatisfy { isCircle($0, "first", name) })
        }
        #expect(await ends(group))
        #expect(clock.pendingCount == 0)
    }
}
