// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// When each key ran last and who waits for it, as a pure value.
///
/// ```text
///          granted             ended after a run              its time came
///   free ───────────▶ running ───────────────────▶ resting ───────────────────▶ free, or running for the next
///    ▲                   │ ended without a run
///    └───────────────────┘
/// ```
package struct ThrottleMachine<Party: Hashable> {
    private enum Phase {
        case running(Party, interval: Duration)
        case resting(until: OperationInstant)
    }

    private struct Entry {
        var phase: Phase
        var line = ArrivalLine<Party>()
        var intervals: [Party: Duration] = [:]

        /// When the rest ends; nil while the key runs.
        var restEnd: OperationInstant? {
            if case .resting(let end) = phase { end } else { nil }
        }
    }

    /// What came of a question.
    package enum Answer: Equatable {
        case granted
        case waits
        /// It came too early, and shall not wait; nil while the key runs.
        case dropped(until: OperationInstant?)
    }

    /// What a question did to others.
    package struct Reply {
        package var answer: Answer
        /// One that waited and may run now.
        package var granted: Party?
        /// Those whose place it took.
        package var replaced: [Party] = []
    }

    private var entries: [String: Entry] = [:]
    /// How many keys there may be before those that are free again are forgotten.
    private var sweepCount = 64

    package init() {}

    /// How many keys are remembered.
    package var count: Int { entries.count }

    /// Asks whether the key may run.
    ///
    /// - Parameters:
    ///   - party: Who asks; it has not asked before, or left since.
    ///   - key: What it would run.
    ///   - interval: How long the key rests after this run.
    ///   - early: What to do if the key may not run yet.
    ///   - now: The present moment.
    package mutating func ask(
        _ party: Party, _ key: String, interval: Duration, early: ThrottleRule.Early, now: OperationInstant
    ) -> Reply {
        let granted = wake(key, now: now)
        guard let phase = entries[key]?.phase else {
            sweep(now: now)
            entries[key] = Entry(phase: .running(party, interval: interval))
            return Reply(answer: .granted, granted: granted)
        }
        if early == .drop { return Reply(answer: .dropped(until: entries[key]?.restEnd), granted: granted) }
        var replaced: [Party] = []
        if early == .replace {
            replaced = waiting(for: key)
            entries[key] = Entry(phase: phase)
        }
        entries[key]?.line.append(party)
        entries[key]?.intervals[party] = interval
        return Reply(answer: .waits, granted: granted, replaced: replaced)
    }

    /// The party ended, or waits no more; returns one that waited and may run now.
    package mutating func leave(_ party: Party, _ key: String, hasRun: Bool, now: OperationInstant) -> Party? {
        guard case .running(party, let interval) = entries[key]?.phase else {
            entries[key]?.line.remove(party)
            entries[key]?.intervals[party] = nil
            return nil
        }
        // One that did not run after all leaves the key as it found it.
        entries[key]?.phase = .resting(until: hasRun ? now.advanced(by: max(interval, .zero)) : now)
        return wake(key, now: now)
    }

    /// If the key has rested, lets the first one that waits run, and returns it; forgets the key if there is none.
    package mutating func wake(_ key: String, now: OperationInstant) -> Party? {
        guard case .resting(let end) = entries[key]?.phase, end <= now else { return nil }
        guard let next = entries[key]?.line.popFirst() else {
            entries[key] = nil
            return nil
        }
        let interval = entries[key]?.intervals.removeValue(forKey: next) ?? .zero
        entries[key]?.phase = .running(next, interval: interval)
        return next
    }

    /// When `wake` must be called for the sake of one that waits.
    package func alarm(for key: String) -> OperationInstant? {
        entries[key].flatMap { $0.line.isEmpty ? nil : $0.restEnd }
    }

    /// From when on the key may run; nil if it may now, and the distant future while it runs.
    package func nextRun(of key: String, now: OperationInstant) -> OperationInstant? {
        guard let entry = entries[key] else { return nil }
        guard let end = entry.restEnd else { return .distantFuture }
        return end <= now && entry.line.isEmpty ? nil : max(end, now)
    }

    /// The one that runs, or was let in and is about to.
    package func runner(of key: String) -> Party? {
        if case .running(let party, _) = entries[key]?.phase { party } else { nil }
    }

    /// Those that wait for a key, the next one at the front.
    package func waiting(for key: String) -> [Party] { entries[key]?.line.all ?? [] }

    /// Forgets keys that are free again, at a constant cost for each question in the mean.
    private mutating func sweep(now: OperationInstant) {
        guard entries.count >= sweepCount else { return }
        entries = entries.filter { _, entry in
            guard entry.line.isEmpty, let end = entry.restEnd else { return true }
            return end > now
        }
        sweepCount = max(64, 2 * entries.count)
    }
}
