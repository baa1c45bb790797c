// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

// The one file that notifies Foundation of the state of an operation: by key-value observing on Apple platforms, and by the
// notification that replaces it on Linux.

#if canImport(ObjectiveC)
    extension ManagedOperation {
        func signalExecuting() {
            for operation in [self] + maps {
                operation.willChangeValue(forKey: "isExecuting")
                operation.didChangeValue(forKey: "isExecuting")
            }
        }

        func signalCancelled() {
            // Foundation asks for `isReady` in its own `cancel()`. It needs no reminder here, and must not get one: the
            // operation may be in its `deinit`, where forming a weak reference ends the process.
            core.withLock { $0.extras?.readiness.beginAnnouncement() }
            for operation in [self] + maps { operation.cancelInFoundation() }
            core.withLock { $0.extras?.readiness.endAnnouncement() }
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

        /// Tells Foundation that the mapped operations have ended with their original.
        func signalEnd(of records: MapRecords) {
            for mapped in records.alive { _ = mapped.signalEnd { true } }
        }

        /// Tells key-value observers that `isReady` may have changed.
        fileprivate func announceReadiness() {
            willChangeValue(forKey: "isReady")
            didChangeValue(forKey: "isReady")
        }

        /// Whether readiness is announced although no queue was told the contrary.
        ///
        /// A key-value observer need not ask first.
        fileprivate static var announcesUnasked: Bool { true }

        // Each step of it is announced by itself.
        static var canEndInOneStep: Bool { false }

        func signalEndOfUnbegun() {}

        // Apple platforms have no documented way to ask whether a queue holds an operation.
        func isHeldByQueue(isByQueue: Bool, ignoresMaps: Bool = false) -> Bool { false }

        func startOfMap(_ record: MapRecord, isByQueue: Bool) -> StartOfMap { isByQueue ? .byQueue : .manual }
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

        /// Tells Foundation's queues and dependents that the mapped operations have ended with their original.
        func signalEnd(of records: MapRecords) {
            let mapped = core.withLock { _ in
                records.all.compactMap { record -> (ManagedOperation, MapRecord.Standing, Bool)? in
                    record.mapped.map { ($0, record.standing, record === records.added) }
                }
            }
            for (operation, standing, wasAdded) in mapped {
                // An operation that its queue has not started is only announced as ready, because the queue sees at the
                // start that it has finished. One that neither a caller nor a queue used is not announced: a queue that
                // got it later would trap. A `QueueManager` or a group starts the original of the operation that was
                // added, so that operation counts as used.
                let isHeld =
                    switch standing {
                    case .idle: wasAdded ? false : nil as Bool?
                    case .started: false
                    case .asked: FoundationQueueProbe.isHeld(operation, mayBeStarting: true)
                    case .askedAfterStart: FoundationQueueProbe.isHeld(operation, mayBeStarting: false)
                    }
                if let isHeld { operation.didChangeValue(forKey: isHeld ? "isReady" : "isFinished") }
            }
        }

        /// Whether an operation that nothing observes may be cancelled and ended at once.
        static var canEndInOneStep: Bool { true }

        /// Tells Foundation's dependents of an operation that is in none of its queues.
        func signalEndOfUnbegun() { didChangeValue(forKey: "isFinished") }

        /// Tells the queue of Foundation that `isReady` may have changed.
        fileprivate func announceReadiness() { didChangeValue(forKey: "isReady") }

        /// Whether readiness is announced although no queue was told the contrary.
        ///
        /// Only queues are notified, and a queue asks first.
        fileprivate static var announcesUnasked: Bool { false }
    }

    extension MapRecord {
        /// What a mapped operation is to the queues of Foundation.
        enum Standing { case idle, started, asked, askedAfterStart }

        var standing: Standing {
            if wasStarted { return wasAskedAfterStart ? .askedAfterStart : .started }
            return wasAsked ? .asked : .idle
        }
    }

    extension ManagedOperation {
        /// Whether this start comes from somebody else than the Foundation queue that holds the operation.
        ///
        /// It is also true if a queue holds an operation that is mapped from this one, because that queue will start
        /// both.
        ///
        /// - Parameters:
        ///   - isByQueue: Whether the start may come from that queue. Then a check that is faster comes first.
        ///   - ignoresMaps: Whether mapped operations are ignored.
        func isHeldByQueue(isByQueue: Bool, ignoresMaps: Bool = false) -> Bool {
            if let original { return original.isHeldByQueue(isByQueue: isByQueue, ignoresMaps: ignoresMaps) }
            let (wasAsked, maps) = core.withLock { core in
                (core.wasAskedForReadiness, ignoresMaps ? [] : core.extras?.maps?.unstarted ?? [])
            }
            if wasAsked {
                if isByQueue, isStartedByCurrentQueue { return false }
                if FoundationQueueProbe.isHeld(self, mayBeStarting: !isByQueue) { return true }
                // The queue holds the operation, which no longer waits for its start. So the queue is starting it.
                if isByQueue, !maps.isEmpty, FoundationQueueProbe.isHeld(self, mayBeStarting: true) { return false }
            }
            return maps.contains { FoundationQueueProbe.isHeld($0, mayBeStarting: true) }
        }

        /// Returns where the start of a mapped operation comes from.
        func startOfMap(_ record: MapRecord, isByQueue: Bool) -> StartOfMap {
            guard core.withLock({ _ in record.wasAsked }) else { return .manual }
            if isByQueue, isStartedByCurrentQueue { return .byQueue }
            if FoundationQueueProbe.isHeld(self, mayBeStarting: !isByQueue) { return .beside }
            return isByQueue && FoundationQueueProbe.isHeld(self, mayBeStarting: true) ? .byQueue : .manual
        }

        /// Whether the current queue of Foundation seems to start the operation.
        ///
        /// A queue starts its operations on a thread on which it is the current queue, and not inside another body.
        private var isStartedByCurrentQueue: Bool {
            OperationQueue.current != nil && !Thread.isMainThread && ThreadNotes.current.queuedBodies == 0
        }
    }
#endif

// What a queue of Foundation learns about readiness. The queue on Linux was ported from the one on Apple platforms, so both
// can lose a notification in the same way.

extension ManagedOperation {
    /// Tells the queue that took the operation in before that it is not ready any more.
    func signalDependencyAdded() {
        giveBackOutdatedAdmission()
        let (host, isAsked, maps) = core.withLock { core in
            let isAsked = core.wasAskedForReadiness && !core.isStartUnderWay
            return (core.host, isAsked, core.extras?.maps?.unstarted ?? [])
        }
        if let host { return host.reconsider(self) }
        for mapped in maps { mapped.announceReadiness() }
        guard isAsked else { return }
        announceReadiness()
    }

    /// Tells the queue that the operation may begin.
    ///
    /// One that never had a dependency is known to be ready.
    func signalReadyIfLinked() {
        let (isLinked, maps) = core.withLock { core -> (Bool, [(ManagedOperation, MapRecord)]) in
            let wasDenied = core.extras?.readiness.wasDenied == true || Self.announcesUnasked && core.node != nil
            let isLinked = wasDenied && !core.machine.isStarted
            if isLinked { core.extras?.readiness.beginAnnouncement() }
            return (isLinked, core.extras?.maps?.beginAnnouncements() ?? [])
        }
        for (mapped, record) in maps {
            mapped.announceReadiness()
            core.withLock { _ in record.readiness.endAnnouncement() }
        }
        guard isLinked else { return }
        announceReadiness()
        core.withLock { $0.extras?.readiness.endAnnouncement() }
    }

    /// Answers Foundation's question whether the operation may begin.
    func reportReadiness() -> Bool {
        if let original, let mapRecord { return original.reportReadiness(of: mapRecord) }
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

    /// Answers the same question for an operation that is mapped from this one.
    private func reportReadiness(of record: MapRecord) -> Bool {
        let (isReady, isMissed) = core.withLock { core in
            let isReady = core.isReady || core.node?.listen(.loose(WeakOperation(self))) ?? true
            record.wasAsked = true
            if record.wasStarted { record.wasAskedAfterStart = true }
            return (isReady, !record.wasStarted && record.readiness.report(isReady))
        }
        if isMissed {
            DispatchQueue.global().async { [weak self] in self?.signalReadyIfLinked() }
        }
        return isReady
    }
}

extension MapRecords {
    /// Returns the mapped operations to announce as ready, because a queue of Foundation was told that they are
    /// not.
    fileprivate func beginAnnouncements() -> [(ManagedOperation, MapRecord)] {
        all.compactMap { record in
            let wasDenied = record.readiness.wasDenied || ManagedOperation.announcesUnasked
            guard wasDenied, !record.wasStarted, let mapped = record.mapped else { return nil }
            record.readiness.beginAnnouncement()
            return (mapped, record)
        }
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

#if !canImport(ObjectiveC)
    /// Finds out whether a Foundation queue holds an operation that it has not started.
    ///
    /// Starting such an operation by hand is a mistake that Foundation on Linux answers by going on to use the operation
    /// after it was freed, and it offers no way to ask. So this looks at its two fields, by reflection, and only where an
    /// operation is started by hand that somebody asked before whether it was ready, as a queue does.
    enum FoundationQueueProbe {
        /// - Parameter mayBeStarting: Whether one counts too which its queue is starting at this moment.
        static func isHeld(_ operation: Operation, mayBeStarting: Bool) -> Bool {
            guard let positions, let mirror = foundationMirror(of: operation) else { return false }
            guard child(of: mirror, at: positions.queue) is Unmanaged<OperationQueue> else { return false }
            return mayBeStarting || "\(child(of: mirror, at: positions.state))" != startingState
        }

        /// The name of the state in which Foundation sees an operation; empty if it cannot be found.
        static func state(of operation: Operation) -> String {
            guard let positions, let mirror = foundationMirror(of: operation) else { return "" }
            return "\(child(of: mirror, at: positions.state))"
        }

        /// The state which a queue gives an operation just before it calls `start()`.
        private static let startingState = "starting"

        /// Where the fields are; nil if a future Foundation has none of these names.
        ///
        /// Found on an operation of our own: reading the other fields of one that is in use would be a race.
        private static let positions: (queue: Int, state: Int)? = {
            guard let mirror = foundationMirror(of: Operation()) else { return nil }
            let labels = mirror.children.map(\.label)
            guard let queue = labels.firstIndex(of: "__queue"), let state = labels.firstIndex(of: "__state") else {
                return nil
            }
            return (queue, state)
        }()

        private static func child(of mirror: Mirror, at position: Int) -> Any {
            mirror.children[mirror.children.index(mirror.children.startIndex, offsetBy: position)].value
        }

        private static func foundationMirror(of operation: Operation) -> Mirror? {
            var mirror: Mirror? = Mirror(reflecting: operation)
            while let current = mirror, current.subjectType != Operation.self { mirror = current.superclassMirror }
            return mirror
        }
    }
#endif
