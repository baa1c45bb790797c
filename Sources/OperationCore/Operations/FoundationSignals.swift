// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

// The one file that speaks to the machinery beneath Foundation.Operation: key-value observing on Apple's systems, the
// notification that stands in for it on Linux.

#if canImport(ObjectiveC)
    extension ManagedOperation {
        func signalExecuting() {
            willChangeValue(forKey: "isExecuting")
            didChangeValue(forKey: "isExecuting")
        }

        func signalCancelled() {
            cancelInFoundation()
            signalReadyIfLinked()
        }

        /// Calls `flip`, which makes the operation finished, between the two halves of the announcement.
        func signalEnd(_ flip: () -> Bool) -> Bool {
            willChangeValue(forKey: "isExecuting")
            willChangeValue(forKey: "isFinished")
            let didEnd = flip()
            didChangeValue(forKey: "isFinished")
            didChangeValue(forKey: "isExecuting")
            return didEnd
        }

        func signalReadyIfLinked() {
            willChangeValue(forKey: "isReady")
            didChangeValue(forKey: "isReady")
        }

        func signalDependencyAdded() {
            giveBackOutdatedAdmission()
            if let host = core.withLock({ $0.host }) { return host.reconsider(self) }
            signalReadyIfLinked()
        }

        func reportReadiness() -> Bool {
            core.withLock { core in
                core.isReady || core.node?.listen(.loose(WeakOperation(self))) ?? true
            }
        }

        // Each step of it is announced by itself.
        static var canEndInOneStep: Bool { false }

        func signalEndOfUnbegun() {}

        // There is no way to ask on Apple's systems.
        func isHeldByQueue(isByQueue: Bool) -> Bool { false }
    }
#else
    extension ManagedOperation {
        // Linux: a queue counts an operation as executing from the moment in which it starts it, and never asks again.
        func signalExecuting() {}

        // Linux: nothing asks for it. The flag of Foundation stays down on purpose: an operation for which it is up
        // makes a queue with a pending barrier lock itself twice.
        func signalCancelled() {}

        /// Calls `flip`, which makes the operation finished, and tells the queue and Foundation's dependents.
        ///
        /// Only after `start()`: told earlier, a queue frees the operation and goes on using it.
        func signalEnd(_ flip: () -> Bool) -> Bool {
            guard flip() else { return false }
            // Started by hand and given to a queue afterwards: when its turn comes there, the queue sees by itself that
            // it finished.
            let isInQueue =
                core.withLock { $0.wasAskedAfterStart } && FoundationQueueProbe.isHeld(self, mayBeStarting: false)
            if !isInQueue { didChangeValue(forKey: "isFinished") }
            return true
        }

        /// Whether an operation that nothing observes may be cancelled and ended at once.
        static var canEndInOneStep: Bool { true }

        /// Tells Foundation's dependents of an operation that is in none of its queues.
        func signalEndOfUnbegun() { didChangeValue(forKey: "isFinished") }

        /// Tells the queue that took the operation in before that it is not ready any more.
        func signalDependencyAdded() {
            giveBackOutdatedAdmission()
            let (host, isAsked) = core.withLock { ($0.host, $0.wasAskedForReadiness && !$0.isStartUnderWay) }
            if let host { return host.reconsider(self) }
            guard isAsked else { return }
            didChangeValue(forKey: "isReady")
        }

        /// Tells the queue that the operation may begin.
        ///
        /// One that never had a dependency is known to be ready.
        func signalReadyIfLinked() {
            let isLinked = core.withLock { core in
                guard let extras = core.extras, !core.machine.isStarted else { return false }
                guard extras.readiness.wasDenied else { return false }
                extras.readiness.beginAnnouncement()
                return true
            }
            guard isLinked else { return }
            didChangeValue(forKey: "isReady")
            core.withLock { $0.extras?.readiness.endAnnouncement() }
        }

        /// Answers Foundation's question whether the operation may begin.
        func reportReadiness() -> Bool {
            let (isReady, isMissed) = core.withLock { core in
                let isReady = core.isReady || core.node?.listen(.loose(WeakOperation(self))) ?? true
                core.wasAskedForReadiness = true
                if core.isStartUnderWay { core.wasAskedAfterStart = true }
                guard !core.machine.isStarted else { return (isReady, false) }
                if isReady, core.extras == nil { return (true, false) }
                return (isReady, core.need().readiness.report(isReady))
            }
            if isMissed {
                DispatchQueue.global().async { [weak self] in self?.signalReadyIfLinked() }
            }
            return isReady
        }
    }

    extension ManagedOperation {
        /// Whether this start comes from somebody else than the Foundation queue that holds the operation.
        ///
        /// - Parameter isByQueue: Whether it may come from that queue, which need not be slowed down by the question.
        func isHeldByQueue(isByQueue: Bool) -> Bool {
            guard core.withLock({ $0.wasAskedForReadiness }) else { return false }
            // A queue starts its operations on a thread where it is the current one, and not inside another body.
            let isAmidQueue = OperationQueue.current != nil && !Thread.isMainThread
            if isByQueue, isAmidQueue, ThreadNotes.current.queuedBodies == 0 { return false }
            return FoundationQueueProbe.isHeld(self, mayBeStarting: !isByQueue)
        }
    }

    /// What Foundation was told about the readiness of an operation that has dependencies.
    ///
    /// A queue asks for `isReady` while it takes an operation in, and notes the answer only afterwards. Where the last
    /// dependency ends in between, on another thread, the announcement is overwritten by the older answer, and the
    /// queue finds out only when it looks for something to do, upon which it notes the new answer and does nothing: the
    /// operation waits for ever. So an answer "yes" that follows a "no" and was not asked for by an announcement of
    /// our own is followed by one more announcement.
    struct ReadinessReports {
        private(set) var wasDenied = false
        private var announcer: pthread_t?
        private var isReminderDue = false

        mutating func beginAnnouncement() {
            announcer = pthread_self()
            isReminderDue = false
        }

        mutating func endAnnouncement() {
            if announcer == pthread_self() { announcer = nil }
        }

        /// Notes an answer; returns whether the one who asked needs to be reminded.
        mutating func report(_ isReady: Bool) -> Bool {
            if !isReady {
                wasDenied = true
                return false
            }
            guard wasDenied, !isReminderDue, announcer != pthread_self() else { return false }
            isReminderDue = true
            return true
        }
    }
#endif
