// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Nothing that a user wrote runs under a lock: the hooks, the closures, and the `deinit` of what they hold.
@Suite(.timeLimit(.minutes(3)))
struct UserCodeTests {
    /// Asks, from wherever a user's code is called, whether another thread can use the operation at that moment.
    final class LockProbe: Sendable {
        let answers = EventRecorder<Bool>()
        // Sendable: written once, in init; loading a weak reference is atomic.
        private nonisolated(unsafe) weak var operation: HandDriven?

        init(_ operation: HandDriven) { self.operation = operation }

        func ask() {
            let done = DispatchSemaphore(value: 0)
            // Not a capture of self: this may be called by a deinit.
            Thread { [operation] in
                if let operation {
                    _ = (operation.state, operation.outcome, operation.isReady, operation.dependencies)
                    try? HandDriven().depend(on: operation, otherwise: .runAnyway)
                    operation.cancel()
                }
                done.signal()
            }.start()
            // Only a test that fails waits for so long.
            answers.record(done.wait(timeout: .now() + 20) == .success)
        }
    }

    func expectFree(
        _ operation: HandDriven = HandDriven(), _ life: (HandDriven, LockProbe) throws -> Void,
        sourceLocation: SourceLocation = #_sourceLocation
    ) rethrows {
        let probe = LockProbe(operation)
        try life(operation, probe)
        #expect(probe.answers.events.contains(true), "never called", sourceLocation: sourceLocation)
        #expect(!probe.answers.events.contains(false), "called under a lock", sourceLocation: sourceLocation)
    }

    @Test func `a handler that is replaced`() {
        expectFree { operation, probe in
            operation.successHandler = { [word = LastWord { probe.ask() }] _ in withExtendedLifetime(word) {} }
            operation.successHandler = { _ in }
        }
        expectFree { operation, probe in
            operation.failureHandler = { [word = LastWord { probe.ask() }] _ in withExtendedLifetime(word) {} }
            operation.failureHandler = nil
        }
        expectFree { operation, probe in
            operation.cancellationHandler = { [word = LastWord { probe.ask() }] _ in withExtendedLifetime(word) {} }
            operation.cancellationHandler = nil
        }
    }

    @Test func `a handler that comes too late for its outcome`() {
        expectFree { operation, probe in
            operation.start()
            operation.finish(withError: .first)
            operation.successHandler = { [word = LastWord { probe.ask() }] _ in withExtendedLifetime(word) {} }
        }
    }

    @Test func `handlers that are dropped at the end`() {
        expectFree { operation, probe in
            operation.successHandler = { [word = LastWord { probe.ask() }] _ in withExtendedLifetime(word) {} }
            operation.failureHandler = { [word = LastWord { probe.ask() }] _ in withExtendedLifetime(word) {} }
            operation.start()
            operation.cancel()
        }
    }

    @Test func `a completion block that is replaced`() {
        expectFree { operation, probe in
            operation.completionBlock = { [word = LastWord { probe.ask() }] in withExtendedLifetime(word) {} }
            operation.completionBlock = nil
        }
    }

    @Test func `an observer that is removed`() {
        expectFree { operation, probe in
            operation.observe { [word = LastWord { probe.ask() }] _ in withExtendedLifetime(word) {} }.cancel()
        }
    }

    @Test func `the hooks and the body`() {
        let probe = Locked<LockProbe?>(nil)
        let ask: @Sendable (HandDriven) -> Void = { _ in probe.withLock { $0 }?.ask() }
        // It is the first question that cancels, and so calls the last hook, which asks again.
        expectFree(HandDriven(hooks: .init(cancel: ask, suspend: ask))) { operation, lockProbe in
            probe.withLock { $0 = lockProbe }
            operation.start()
            operation.suspend()
        }
        expectFree(HandDriven(hooks: .init(resume: ask))) { operation, lockProbe in
            probe.withLock { $0 = lockProbe }
            operation.start()
            operation.suspend()
            operation.resume()
        }
        expectFree(HandDriven(hooks: .init(main: ask))) { operation, lockProbe in
            probe.withLock { $0 = lockProbe }
            operation.start()
        }
    }

    @Test func `a result that is dropped`() {
        let operation = ClosureOperation<LastWord, Never> { LastWord {} }
        let isUsable = EventRecorder<OperationState>()
        operation.start()
        operation.finish(withResult: LastWord { [unowned operation] in isUsable.record(operation.state) })
        #expect(isUsable.events == [.finished])
    }

    @Test func `a closure that converts an outcome`() {
        expectFree { operation, probe in
            let mapped = operation.mapResult { result in
                probe.ask()
                return result
            }
            mapped.start()
            operation.finish(withResult: 1)
        }
    }
}
