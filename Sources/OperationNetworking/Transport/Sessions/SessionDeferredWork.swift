// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The work that the thread of a session defers while it is busy, so that it wakes another thread less often.
///
/// A busy session ends one task after another. The thread that handles these ends is woken once for several of them.
///
/// The object is not `Sendable`, because each thread of a session has its own.
package final class SessionDeferredWork {
    /// The maximum delay in nanoseconds.
    private static let maximumDelay: Int64 = 100_000

    private var items: [() -> Void] = []
    /// The objects for which work is deferred only once.
    private var owners: [ObjectIdentifier] = []
    /// The time at which the oldest work must be done.
    private var due: Int64 = 0
    private let now: () -> Int64

    /// Creates the object of the calling thread, which alone may use and release it.
    ///
    /// - Parameter now: Returns the time of a clock in nanoseconds.
    package init(now: @escaping () -> Int64) {
        self.now = now
        pthread_setspecific(Self.key, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit { pthread_setspecific(Self.key, nil) }

    /// The object of the calling thread, or `nil` if the thread is not that of a session.
    package static var current: SessionDeferredWork? {
        pthread_getspecific(key).map { Unmanaged<SessionDeferredWork>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Whether any work was deferred.
    package var hasItems: Bool { !items.isEmpty }

    /// Defers work until the thread has nothing else to do.
    package func deferWork(_ work: @escaping () -> Void) {
        if items.isEmpty { due = now() + Self.maximumDelay }
        items.append(work)
    }

    /// Defers work in the same way, unless work for the same object is already deferred.
    ///
    /// - Parameters:
    ///   - owner: The object for which the work is done, and which the work keeps alive.
    ///   - work: The work.
    package func deferWork(for owner: AnyObject, _ work: @escaping () -> Void) {
        let owner = ObjectIdentifier(owner)
        guard !owners.contains(owner) else { return }
        owners.append(owner)
        deferWork(work)
    }

    /// Does the deferred work if it was delayed for too long.
    package func performIfDue() {
        if hasItems, now() >= due { performAll() }
    }

    /// Does the deferred work, also work that is deferred in the meantime.
    ///
    /// The thread of a closed session has no later turn in which it could do such work.
    package func performAll() {
        while hasItems {
            owners = []
            for work in exchange(&items, with: []) { work() }
        }
    }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()
}
