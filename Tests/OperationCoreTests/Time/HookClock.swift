// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit
import Testing

/// A stopped clock that lets a test act between the steps of the library, to provoke a race.
///
/// Each hook is called once, at the next call of its kind.
final class HookClock: OperationClock {
    private struct Hooks: Sendable {
        var now: (@Sendable () -> Void)?
        var schedule: (@Sendable () -> Void)?
        var afterSchedule: (@Sendable () -> Void)?
        var timerCancel: (@Sendable () -> Void)?
    }

    let manual = ManualClock()
    private let hooks = Locked(Hooks())

    var now: OperationInstant {
        take(\.now)?()
        return manual.now
    }

    var pendingCount: Int { manual.pendingCount }

    func beforeNextNow(_ hook: @escaping @Sendable () -> Void) { hooks.withLock { $0.now = hook } }
    func beforeNextSchedule(_ hook: @escaping @Sendable () -> Void) { hooks.withLock { $0.schedule = hook } }
    func afterNextSchedule(_ hook: @escaping @Sendable () -> Void) { hooks.withLock { $0.afterSchedule = hook } }
    func beforeNextTimerCancel(_ hook: @escaping @Sendable () -> Void) { hooks.withLock { $0.timerCancel = hook } }

    func schedule(at instant: OperationInstant, _ action: @escaping @Sendable () -> Void) -> any OperationTimer {
        take(\.schedule)?()
        let timer = manual.schedule(at: instant, action)
        take(\.afterSchedule)?()
        return HookTimer(clock: self, timer: timer)
    }

    private func take(_ hook: WritableKeyPath<Hooks, (@Sendable () -> Void)?>) -> (@Sendable () -> Void)? {
        hooks.withLock { hooks in
            defer { hooks[keyPath: hook] = nil }
            return hooks[keyPath: hook]
        }
    }

    private struct HookTimer: OperationTimer {
        let clock: HookClock
        let timer: any OperationTimer

        func cancel() {
            clock.take(\.timerCancel)?()
            timer.cancel()
        }
    }
}

extension HookClock {
    /// Resumes an operation whose timeout has ten seconds left, a long time after it was suspended.
    func expectTenSecondsLeft(for operation: HandDriven) {
        manual.advance(by: .seconds(100))
        operation.resume()
        manual.expectTimeout(of: operation, in: .seconds(10))
    }
}

extension ManualClock {
    /// Advances by this time, which must be all that is left of the operation's timeout.
    func expectTimeout(of operation: HandDriven, in rest: Duration) {
        advance(by: rest - .milliseconds(1))
        #expect(operation.state == .executing)
        advance(by: .milliseconds(1))
        #expect(operation.cancellationCause?.code == .timedOut)
    }
}
