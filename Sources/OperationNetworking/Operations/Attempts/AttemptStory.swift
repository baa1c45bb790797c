// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// What became of the attempts of one operation, and for how long it has been at them: a pure value, told the time.
package struct AttemptStory: Sendable {
    /// A download that came so much further is a new beginning.
    private static let leastProgress: Int64 = 64 << 10

    package private(set) var records: [AttemptRecord] = []
    /// How often a download got somewhere before it failed.
    package private(set) var advances = 0
    private var firstBegan: OperationInstant?
    private var present: (number: Int, began: OperationInstant, failed: OperationInstant?)?
    /// Since when it is counted for how long.
    private var counted: OperationInstant?
    /// For how much of that the operation stood still, since when it does, and why.
    private var still = Duration.zero
    private var stillSince: OperationInstant?
    private var isSuspended = false
    private var isAside = false
    /// How much of a file there was when an attempt failed.
    private var saved: Int64 = 0
    /// How many attempts do not count since a download got somewhere, and how many of them did not anyway.
    private var discounted = (all: 0, anyway: 0)

    package init() {}

    /// The preparation of an attempt begins, maybe not for the first time.
    package mutating func begin(_ number: Int, now: OperationInstant, isSuspended: Bool) {
        if firstBegan == nil { (firstBegan, counted) = (now, now) }
        if present?.number != number { present = (number, now, nil) }
        (self.isSuspended, isAside) = (isSuspended, false)
        settle(now)
    }

    /// The operation was suspended, or resumed.
    package mutating func suspend(_ isSuspended: Bool, now: OperationInstant) {
        self.isSuspended = isSuspended
        settle(now)
    }

    /// It was put aside, or held back, until the next preparation.
    package mutating func putAside(now: OperationInstant) {
        isAside = true
        settle(now)
    }

    private mutating func settle(_ now: OperationInstant) {
        let isStill = isSuspended || isAside
        guard firstBegan != nil, isStill != (stillSince != nil) else { return }
        if let since = exchange(&stillSince, with: isStill ? now : nil) { still += since.duration(to: now) }
    }

    /// How long ago the first attempt that counts began, without the time for which the operation stood still.
    package func elapsed(at now: OperationInstant) -> Duration {
        let standing = stillSince.map { $0.duration(to: now) } ?? .zero
        return (counted ?? now).duration(to: now) - still - standing
    }

    /// An attempt failed; of a download so many bytes are there, and so many attempts were not to blame.
    package mutating func fail(_ number: Int, saved: Int64? = nil, replays: Int = 0, now: OperationInstant) {
        if present?.number == number { present?.failed = now }
        guard let saved, saved >= self.saved + Self.leastProgress else { return }
        self.saved = saved
        advances += 1
        discounted = (number - 1, replays)
        (counted, still) = (now, .zero)
        if stillSince != nil { stillSince = now }
    }

    /// How many attempts do not count, if so many were not to blame.
    package func uncounted(_ replays: Int) -> Int { discounted.all + replays - discounted.anyway }

    /// What became of it.
    package mutating func note(
        _ number: Int, _ error: NetworkError, _ decision: AttemptMachine.Decision, now: OperationInstant
    ) {
        // One that was put aside is decided again, and told once.
        guard records.last?.number != number else { return }
        let began = present?.began ?? now
        records.append(
            AttemptRecord(
                number: number, code: error.code, phase: error.phase, status: error.status,
                began: (firstBegan ?? now).duration(to: began), duration: began.duration(to: present?.failed ?? now),
                pause: decision.pause, putAside: decision.reason))
        if decision.reason != nil { putAside(now: now) }
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

extension NetworkAttempts {
    /// What became of the attempts before, where anybody has a say about them.
    var records: [AttemptRecord] { state.withLock { $0.story.records } }

    /// For how long the operation has been at it.
    func elapsed(at now: OperationInstant) -> Duration { state.withLock { $0.story.elapsed(at: now) } }

    /// The preparation of an attempt begins.
    func beginStory(_ number: Int, _ host: any AttemptHost) {
        guard state.withLock({ !$0.policies.isEmpty }) else { return }
        let now = host.clock.now
        state.withLock { $0.story.begin(number, now: now, isSuspended: $0.machine.isSuspended) }
    }

    /// The operation was suspended, or resumed.
    func storyMayGoOn(_ mayGoOn: Bool) {
        guard let (host, _) = running(), state.withLock({ !$0.policies.isEmpty }) else { return }
        let now = host.clock.now
        state.withLock { $0.story.suspend(!mayGoOn, now: now) }
    }
}
