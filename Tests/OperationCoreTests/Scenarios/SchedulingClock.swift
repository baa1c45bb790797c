// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit

/// A manual clock that calls a closure when an action is scheduled.
struct SchedulingClock: OperationClock {
    private let clock: ManualClock
    private let onSchedule: @Sendable () -> Void

    init(_ clock: ManualClock, onSchedule: @escaping @Sendable () -> Void) {
        self.clock = clock
        self.onSchedule = onSchedule
    }

    var now: OperationInstant { clock.now }

    func schedule(at instant: OperationInstant, _ action: @escaping @Sendable () -> Void) -> any OperationTimer {
        defer { onSchedule() }
        return clock.schedule(at: instant, action)
    }
}
