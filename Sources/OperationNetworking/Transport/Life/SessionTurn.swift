// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// What the thread of a session puts off for as long as it has something else to do: to wake another thread.
///
/// A session that is busy ends one task after another. Whoever has to do with each of them on a thread of its own is then
/// woken once for several, and not for each.
///
/// Not Sendable on purpose: each such thread has one of its own.
package final class SessionTurn {
    private struct Debt {
        let creditor: ObjectIdentifier
        let work: () -> Void
    }

    /// How long it may be put off, in nanoseconds, whatever else there is to do.
    private static let patience: Int64 = 100_000

    private var debts: [Debt] = []
    /// When the oldest of them must be done.
    private var due: Int64 = 0
    private let now: () -> Int64

    /// Makes it that of the calling thread, which alone may use it, and let go of it.
    ///
    /// - Parameter now: Nanoseconds of a clock.
    package init(now: @escaping () -> Int64) {
        self.now = now
        pthread_setspecific(Self.key, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit { pthread_setspecific(Self.key, nil) }

    /// That of the calling thread; nil if it is not one of a session.
    package static var current: SessionTurn? {
        pthread_getspecific(key).map { Unmanaged<SessionTurn>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Whether something was put off.
    package var isOwing: Bool { !debts.isEmpty }

    /// Does it when the thread has nothing else to do, unless something of the same creditor's will be done then anyway.
    ///
    /// - Parameters:
    ///   - creditor: Whose work it is; the work keeps it alive.
    ///   - work: What is put off.
    package func putOff(for creditor: AnyObject, _ work: @escaping () -> Void) {
        let creditor = ObjectIdentifier(creditor)
        guard !debts.contains(where: { $0.creditor == creditor }) else { return }
        if debts.isEmpty { due = now() + Self.patience }
        debts.append(Debt(creditor: creditor, work: work))
    }

    /// Does what was put off for too long.
    package func settleIfDue() {
        if isOwing, now() >= due { settle() }
    }

    /// Does what was put off.
    package func settle() {
        for debt in exchange(&debts, with: []) { debt.work() }
    }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()
}
