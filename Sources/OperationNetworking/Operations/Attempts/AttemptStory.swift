// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// What became of the attempts of one operation: a pure value, told the time.
struct AttemptStory: Sendable {
    private(set) var records: [AttemptRecord] = []
    private var firstBegan: OperationInstant?
    private var present: (number: Int, began: OperationInstant)?
    /// For how long the operation was put aside.
    private var aside = Duration.zero
    private var asideSince: OperationInstant?

    /// An attempt begins.
    mutating func begin(_ number: Int, now: OperationInstant) {
        if firstBegan == nil { firstBegan = now }
        if let since = exchange(&asideSince, with: nil) { aside += since.duration(to: now) }
        present = (number, now)
    }

    /// It failed; returns how long ago the first one began, without the time for which the operation was put aside.
    mutating func fail(_ number: Int, now: OperationInstant) -> Duration {
        // One whose request could not be made never began.
        if present?.number != number { begin(number, now: now) }
        return (firstBegan ?? now).duration(to: now) - aside
    }

    /// What became of it.
    mutating func note(
        _ number: Int, _ error: NetworkError, _ decision: AttemptMachine.Decision, now: OperationInstant
    ) {
        // One that was put aside is decided again, and told once.
        guard records.last?.number != number else { return }
        let first = firstBegan ?? now, began = present?.began ?? now
        records.append(
            AttemptRecord(
                number: number, code: error.code, phase: error.phase, status: error.status,
                began: first.duration(to: began), duration: began.duration(to: now), pause: decision.pause,
                putAside: decision.reason))
        if decision.reason != nil { asideSince = now }
    }
}

extension AttemptMachine.Decision {
    fileprivate var pause: Duration? {
        switch self {
        case .again(let pause), .replay(let pause): pause
        case .fail, .park: nil
        }
    }

    fileprivate var reason: WaitReason? {
        if case .park(let reason) = self { reason } else { nil }
    }
}
