// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// No user code runs while a lock is held: neither hooks, closures nor the `deinit` of captured objects.
@Suite(.timeLimit(.minutes(3)))
struct UserCodeTests {
    /// Checks inside user code whether another thread can use the operation at that moment.
    final class LockProbe: Sendable {
        let answers = EventRecorder<Bool>()
        // Sendable: written once, in init; loading a weak reference is atomic.
        private nonisolated(unsafe) weak var operation: HandDriven?

        init(_ operation: HandDriven) { self.operation = operation }

        func ask() {
            let done = DispatchSemaphore(value: 0)
            // Does not capture self, because a deinit can call this method.
            Thread { [operation] in
                if let operation {
                    _ = (operation.state, operation.outcome, operation.isReady, operation.dependencies)
                    try? HandDriven().depend(on: operation, otherwise: .runAnyway)
                    operation.cancel()
                }
                done.signal()
            }.start()
            // Only a failing test waits this long.
            answers.record(done.wait(timeout: .now() + 20) == .success)
        }
    }

    func expectFree(
        _ operation: HandDriven = HandDriven(), _ life: (HandDriven, LockProbe) throws -> Void,
        sourceLocation: SourceLocation = #_sourceLocation
    ) rethrows {
        let probe = LockProbe(operation)
        try life(operation, probe)
        #expect(probe.answers.events.contains(true), "The user code was never called.", sourceLocation: sourceLocation)
        #expect(!probe.answers.events.contains(false), "User code ran under a lock.", sourceLocation: sourceLocation)
    }

    @Test func `a replaced handler is released without a lock held`() {
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

    @Test func `a handler that does not match the outcome is released without a lock held`() {
        expectFree { operation, probe in
            operation.start()
            operation.finish(withError: .first)
            operation.successHandler = { [word = LastWord { probe.ask() }] _ in withExtendedLifetime(word) {} }
        }
    }

    @Test func `handlers that are dropped at the end are released without a lock held`() {
        expectFree { operation, probe in
            operation.successHandler = { [word = LastWord { probe.ask() }] _ in withExtendedLifetime(word) {} }
            operation.failureHandler = { [word = LastWord { probe.ask() }] _ in withExtendedLifetime(word) {} }
            operation.start()
            operation.cancel()
        }
    }

    @Test func `a replaced completion block is released without a lock held`() {
        expectFree { operation, probe in
            operation.completionBlock = { [word = LastWord { probe.ask() }] in withExtendedLifetime(word) {} }
            operation.completionBlock = nil
        }
    }

    @Test func `a removed observer is released without a lock held`() {
        expectFree { operation, probe in
            operation.observe { [word = LastWord { probe.ask() }] _ in withExtendedLifetime(word) {} }.cancel()
        }
    }

    @Test func `the hooks and the body are called without a lock held`() {
        let probe = Locked<LockProbe?>(nil)
        let ask: @Sendable (HandDriven) -> Void = { _ in probe.withLock { $0 }?.ask() }
        // The first check cancels the operation and so calls didCancel, which checks again.
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

    @Test func `a dropped result is released without a lock held`() {
        let operation = ClosureOperation<LastWord, Never> { LastWord {} }
        let isUsable = EventRecorder<OperationState>()
        operation.startAndFinish(withResult: LastWord { [unowned operation] in isUsable.record(operation.state) })
        #expect(isUsable.events == [.finished])
    }

    @Test func `a closure that converts an outcome is called without a lock held`() {
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
