// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Handlers of a class that is isolated to the main actor.
@Suite(.timeLimit(.minutes(3)))
struct MainActorTests {
    /// A screen as in an app.
    @MainActor
    private final class Screen {
        /// A class that is not `Sendable` and belongs to the main actor.
        final class Label { var text = "" }

        private(set) var events: [String] = []
        let label = Label()

        func show(_ operation: HandDriven) {
            let label = self.label
            operation
                .onMainActor(
                    success: { [weak self] number in self?.events.append("success \(number)") },
                    failure: { [weak self] error in self?.events.append("failure \(error)") },
                    cancellation: { [weak self] cause in self?.events.append("cancelled \(cause.code)") }
                )
                .onMainActor(success: { label.text = "\($0)" })
                .start()
        }

        func note(_ event: String) { events.append(event) }
    }

    private static let ends: [(end: @Sendable (HandDriven) -> Void, event: String)] = [
        ({ $0.finish(withResult: 1) }, "success 1"),
        ({ $0.finish(withError: .first) }, "failure first"),
        ({ $0.cancel() }, "cancelled requested"),
    ]

    @Test @MainActor func `exactly one handler is called on the main actor for any callback queue`() async {
        for (end, event) in Self.ends {
            let screen = Screen(), operation = HandDriven(), elsewhere = DispatchQueue(label: "suspended")
            elsewhere.suspend()
            operation.callbackQueue = elsewhere
            screen.show(operation)
            end(operation)
            #expect(screen.events == [])
            await DispatchQueue.main.drain()
            #expect(screen.events == [event])
            #expect(screen.label.text == (event == "success 1" ? "1" : ""))
            elsewhere.resume()
        }
    }

    @Test @MainActor func `an outcome handler is called once for each kind of end, including a timeout`() async {
        let clock = ManualClock()
        let timedOut: @Sendable (HandDriven) -> Void = { _ in clock.advance(by: .seconds(2)) }
        for (end, event) in Self.ends + [(timedOut, "cancelled timedOut")] {
            let screen = Screen(), operation = HandDriven()
            operation.setTimeout(.seconds(1), on: clock)
            operation.onMainActor(outcome: { outcome in
                switch outcome {
                case .success(let number): screen.note("success \(number)")
                case .failure(let error): screen.note("failure \(error)")
                case .cancelled(let cause): screen.note("cancelled \(cause.code)")
                }
            })
            operation.start()
            end(operation)
            await DispatchQueue.main.drain()
            #expect(screen.events == [event])
        }
    }

    @Test @MainActor func `a handler added after the end is called after the method returns`() async {
        for (end, event) in Self.ends {
            let screen = Screen(), operation = HandDriven()
            operation.start()
            end(operation)
            operation.onMainActor(success: { screen.note("success \($0)") }, failure: { screen.note("failure \($0)") })
                .onMainActor(cancellation: { screen.note("cancelled \($0.code)") })
            #expect(screen.events == [])
            await DispatchQueue.main.drain()
            #expect(screen.events == [event])
        }
    }

    @Test @MainActor func `handlers are called in order and before the handlers of a dependent`() async throws {
        let screen = Screen(), first = HandDriven(),
            second = HandDriven(hooks: .init(main: { $0.finish(withResult: 2) }))
        second.addDependency(first)
        second.onMainActor(success: { screen.note("second \($0)") })
        // Another test can set the default callback queue of the process at the same time.
        first.callbackQueue = .main
        first.successHandler = { number in MainActor.assumeIsolated { screen.note("handler \(number)") } }
        for name in ["a", "b"] { first.onMainActor(success: { screen.note("\(name) \($0)") }) }
        second.startAndKeepAlive()
        first.startAndFinish(withResult: 1)
        await second.ended()
        await DispatchQueue.main.drain()
        #expect(screen.events == ["handler 1", "a 1", "b 1", "second 2"])
    }

    @Test @MainActor func `no handler is called after cancel returns on the main actor`() async {
        let screen = Screen(), operation = HandDriven()
        screen.show(operation)
        operation.finish(withResult: 1)
        operation.cancel()
        operation.onMainActor(success: { screen.note("late \($0)") })
        await DispatchQueue.main.drain()
        #expect(screen.events == [])
        #expect(operation.outcome == .success(1))
    }

    @Test @MainActor func `an operation stays alive until its handler is called and is then freed`() async {
        let screen = Screen(), census = LiveObjects()
        do {
            let operation = census.track(HandDriven())
            operation.onMainActor(success: { _ in screen.note("\(census.count)") })
            operation.startAndFinish(withResult: 1)
        }
        await DispatchQueue.main.drain()
        #expect(screen.events == ["1"])
        #expect(census.count == 0)
    }

    @Test @MainActor func `onMainActor returns the type of the subclass or group on which it is called`() async throws {
        let screen = Screen()
        let closure: ClosureOperation<Int, Never> = ClosureOperation { 1 }.onMainActor(success: { screen.note("\($0)") }
        )
        let group: GroupOperation<[Int], GroupFailure> = GroupOperation.all([closure])
            .onMainActor(progress: { screen.note("progress \($0.fraction)") })
            .onMainActor(success: { screen.note("\($0)") })
        group.startAndKeepAlive()
        await group.ended()
        await DispatchQueue.main.drain()
        #expect(screen.events == ["1", "progress 1.0", "[1]"])
    }

    @Test @MainActor func `progress of a group is reported on the main actor in order and never after cancel`()
        async throws
    {
        let screen = Screen(), group = GroupOperation(policy: .collectAll)
        let children = (0..<2).map { _ in HandDriven() }
        try group.add(children)
        group.callbackQueue = DispatchQueue(label: "elsewhere")
        for name in ["a", "b"] { group.onMainActor(progress: { screen.note("\(name) \($0.fraction)") }) }
        group.startAndKeepAlive()
        for child in children { while !child.isExecuting { await Task.yield() } }
        children[0].finish(withResult: 1)
        await children[0].ended()
        await DispatchQueue.main.drain()
        #expect(screen.events == ["a 0.5", "b 0.5"])
        children[1].finish(withResult: 1)
        // An async call would leave the main actor first.
        group.cancel()
        await group.ended()
        await DispatchQueue.main.drain()
        #expect(screen.events == ["a 0.5", "b 0.5"])
    }
}
