// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct ObserverTests {
    @Test func `observers are called after the handler in the order in which they were added`() async {
        let queue = DispatchQueue(label: "handlers"), told = EventRecorder<String>(), operation = HandDriven()
        operation.callbackQueue = queue
        for number in 0..<5 { operation.observe { told.record("\(number) \($0.word)") } }
        operation.successHandler = { told.record("handler \($0)") }
        operation.startAndFinish(withResult: 1)
        #expect(await told.events(after: queue) == ["handler 1"] + (0..<5).map { "\($0) success 1" })
    }

    @Test func `a removed observer is released and not called`() async {
        let queue = DispatchQueue(label: "handlers"), told = EventRecorder<Int>(), operation = HandDriven()
        let census = LiveObjects()
        operation.callbackQueue = queue
        operation.observe { _ in told.record(1) }
        let observation = operation.observe { [object = census.track(Witness())] _ in
            withExtendedLifetime(object) { told.record(2) }
        }
        operation.observe { _ in told.record(3) }
        #expect(census.count == 1)
        observation.cancel()
        observation.cancel()
        #expect(census.count == 0)
        operation.startAndFinish(withResult: 1)
        observation.cancel()
        #expect(await told.events(after: queue) == [1, 3])
    }

    @Test func `releasing an observation neither ends it nor keeps the operation alive`() async {
        let queue = DispatchQueue(label: "handlers"), told = EventRecorder<String>(), census = LiveObjects()
        var kept: OutcomeObservation?
        do {
            let operation = census.track(HandDriven())
            kept = operation.observe(on: queue) { told.record($0.word) }
            operation.observe(on: queue) { told.record($0.word) }
            operation.startAndFinish(withResult: 1)
        }
        #expect(await told.events(after: queue) == ["success 1", "success 1"])
        #expect(census.count == 0)
        kept?.cancel()
    }

    @Test func `an observer can have its own queue`() async {
        let own = MarkedQueue(), shared = MarkedQueue(), places = EventRecorder<String>(), operation = HandDriven()
        operation.callbackQueue = shared.queue
        operation.observe(on: own.queue) { _ in places.record("own \(own.isCurrent)") }
        operation.observe { _ in places.record("shared \(shared.isCurrent)") }
        operation.start()
        operation.cancel()
        #expect(Set(await places.events(atLeast: 2)) == ["own true", "shared true"])
    }

    /// An observer is added while another thread begins to call earlier observers.
    @Test func `an observer added during notification is called after the earlier observers`() async {
        let queue = DispatchQueue(label: "handlers"), told = EventRecorder<Int>()
        let operation = HandDriven(), clock = HookClock()
        operation.callbackQueue = queue
        operation.start(timeout: .seconds(1), on: clock)
        operation.observe { _ in told.record(1) }
        clock.beforeNextTimerCancel { [unowned operation] in operation.observe { _ in told.record(2) } }
        operation.finish(withResult: 1)
        #expect(await told.events(atLeast: 2) == [1, 2])
    }
}
