// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore

/// A clock whose timers are canceled too late, so that a test can fire them afterward.
final class SlowClock: OperationClock {
    private let actions = Locked<[@Sendable () -> Void]>([])

    var now: OperationInstant { OperationInstant(offset: .zero) }

    func schedule(at instant: OperationInstant, _ action: @escaping @Sendable () -> Void) -> any OperationTimer {
        actions.withLock { $0.append(action) }
        return Timer()
    }

    func fireFirst() {
        let action = actions.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        action?()
    }

    func fireAll() {
        let due = actions.withLock { actions in
            defer { actions = [] }
            return actions
        }
        for action in due { action() }
    }

    private struct Timer: OperationTimer {
        func cancel() {}
    }
}
