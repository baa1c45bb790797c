// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

// Only this file notifies Foundation of the state of an operation. The file uses key-value observing on
// Apple platforms, and its replacement on Linux.

#if canImport(ObjectiveC)
    extension ManagedOperation {
        func signalExecuting() {
            for operation in [self] + maps {
                operation.willChangeValue(forKey: "isExecuting")
                operation.didChangeValue(forKey: "isExecuting")
            }
        }

        func signalCancelled() {
            // Foundation reads `isReady` in its own `cancel()`. Foundation must not get a reminder for that, because
            // the operation may be in its `deinit`, where forming a weak reference traps.
            core.withLock { $0.extras?.readiness.beginAnnouncement() }
            for operation in [self] + maps { operation.cancelInFoundation() }
            core.withLock { $0.extras?.readiness.endAnnouncement() }
            signalReadyIfLinked()
        }

        /// Announces that the operation is about to end.
        func signalBeforeEnd() {
            willChangeValue(forKey: "isExecuting")
            willChangeValue(forKey: "isFinished")
        }

        /// Completes the announcement of `signalBeforeEnd`.
        func signalEnd(didEnd: Bool, wasAskedAfterStart: Bool) {
            didChangeValue(forKey: "isFinished")
            didChangeValue(forKey: "isExecuting")
        }

        /// Notifies Foundation that the mapped operations have ended with their original.
        func signalEnd(of records: MapRecords) {
            for mapped in records.alive {
                mapped.signalBeforeEnd()
                mapped.signalEnd(didEnd: true, wasAskedAfterStart: false)
            }
        }

        /// Notifies key-value observers that `isReady` may have changed.
        fileprivate func announceReadiness() {
            willChangeValue(forKey: "isReady")
            didChangeValue(forKey: "isReady")
        }

        /// Whether readiness is announced even if no queue has read `false` before.
        ///
        /// A key-value observer does not have to read the value first.
        fileprivate static var announcesUnasked: Bool { true }

        // Key-value observers must see each step.
        static var canEndInOneStep: Bool { false }

        func signalEndBeforeStart() {}

        // Apple platforms have no documented way to ask whether a queue holds an operation.
        func isHeldByQueue(isByQueue: Bool, ignoresMaps: Bool = false) -> Bool { false }

        func startOfMap(_ record: MapRecord, isByQueue: Bool) -> StartOfMap { isByQueue ? .byQueue : .manual }
    }
#else
    extension ManagedOperation {
        // On Linux, a queue counts an operation as executing from the moment it starts the operation, and never asks
        // again.
        func signalExecuting() {}

        // On Linux, nothing needs this signal. Foundation's own flag stays `false` on purpose. If it is `true`, a queue
        // with a pending barrier locks itself twice.
        func signalCancelled() {}

        // On Linux, only the end itself is announced.
        func signalBeforeEnd() {}

        /// Notifies the queue and Foundation's dependents that the operation has ended.
        ///
        /// Call this method only after `start()`. If a queue is notified earlier, it frees the operation and continues
        /// to use it.
        func signalEnd(didEnd: Bool, wasAskedAfterStart: Bool) {
            guard didEnd else { return }
            // An operation may be started manually and then added to a queue. When the queue reaches it, the queue sees
            // that the operation has finished.
            if wasAskedAfterStart, FoundationQueueProbe.isHeld(self, mayBeStarting: false) { return }
            didChangeValue(forKey: "isFinished")
        }

        /// Notifies Foundation's queues and dependents that the mapped operations have ended with their original.
        func signalEnd(of records: MapRecords) {
            let mapped = core.withLock { _ in
                records.all.compactMap { record -> (ManagedOperation, wasStarted: Bool, mayBeHeld: Bool, Bool)? in
                    let mayBeHeld = record.wasStarted ? record.wasAskedAfterStart : record.wasAsked
                    return record.mapped.map { ($0, record.wasStarted, mayBeHeld, record === records.added) }
                }
            }
            for (operation, wasStarted, mayBeHeld, wasAdded) in mapped {
                // If a queue has not started the operation, only readiness is announced. The queue sees at the start
                // that the operation has finished. If neither a caller nor a queue used the operation, nothing is
                // announced, because a queue that gets it later would trap. A `QueueManager` or a group starts the
                // original of the operation that was added, so that operation counts as used.
                guard wasStarted || mayBeHeld || wasAdded else { continue }
                let isHeld = mayBeHeld && FoundationQueueProbe.isHeld(operation, mayBeStarting: !wasStarted)
                operation.didChangeValue(forKey: isHeld ? "isReady" : "isFinished")
            }
        }

        /// Whether an operation without observers can be canceled and ended in one step.
        static var canEndInOneStep: Bool { true }

        /// Notifies Foundation's dependents of an operation that is in none of Foundation's queues.
        func signalEndBeforeStart() { didChangeValue(forKey: "isFinished") }

        /// Notifies Foundation's queue that `isReady` may have changed.
        fileprivate func announceReadiness() { didChangeValue(forKey: "isReady") }

        /// Whether readiness is announced even if no queue has read `false` before.
        ///
        /// Only queues are notified, and a queue reads the value first.
        fileprivate static var announcesUnasked: Bool { false }
    }

    extension ManagedOperation {
        /// Returns whether a Foundation queue holds the operation and this start does not come from that queue.
        ///
        /// The result is also `true` if a queue holds an operation that is mapped from this one, because that queue
        /// will start both.
        ///
        /// - Parameters:
        ///   - isByQueue: Whether the start may come from that queue.
        ///   - ignoresMaps: Whether mapped operations are ignored.
        func isHeldByQueue(isByQueue: Bool, ignoresMaps: Bool = false) -> Bool {
            if let original { return original.isHeldByQueue(isByQueue: isByQueue, ignoresMaps: ignoresMaps) }
            let (wasAsked, maps) = core.withLock { core in
                (core.wasAskedForReadiness, ignoresMaps ? [] : core.extras?.maps?.unstarted ?? [])
            }
            if wasAsked {
                if FoundationQueueProbe.isHeld(self, mayBeStarting: !isByQueue) { return true }
                // The queue holds the operation, which no longer waits for its start. So the queue is starting it.
                if isByQueue, !maps.isEmpty, FoundationQueueProbe.isHeld(self, mayBeStarting: true) { return false }
            }
            return maps.contains { FoundationQueueProbe.isHeld($0, mayBeStarting: true) }
        }

        /// Returns the source of the start of a mapped operation.
        func startOfMap(_ record: MapRecord, isByQueue: Bool) -> StartOfMap {
            guard core.withLock({ _ in record.wasAsked }) else { return .manual }
            if FoundationQueueProbe.isHeld(self, mayBeStarting: !isByQueue) { return .beside }
            return isByQueue && FoundationQueueProbe.isHeld(self, mayBeStarting: true) ? .byQueue : .manual
        }
    }
#endif

// The notifications of readiness for Foundation's queues. The queue on Linux was ported from the one on Apple
// platforms, so both can lose a notification in the same way.

extension ManagedOperation {
    /// Notifies the queue that holds the operation that the operation is no longer ready.
    func signalDependencyAdded() {
        if let gate = core.withLock({ $0.extras?.gate }), gate.giveBackIfOutdated(self) {
            core.withLock { $0.host }?.reconsider(self)
        }
        let (host, isAsked, maps) = core.withLock { core in
            let isAsked = core.wasAskedForReadiness && !core.machine.isStartUnderWay
            return (core.host, isAsked, core.extras?.maps?.unstarted ?? [])
        }
        if let host { return host.reconsider(self) }
        for mapped in maps { mapped.announceReadiness() }
        guard isAsked else { return }
        announceReadiness()
    }

    /// Notifies the queue that the operation may begin.
    ///
    /// An operation that never had a dependency is already known to be ready.
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

    /// Returns the value of `isReady` for Foundation.
    func reportReadiness() -> Bool {
        if let original, let mapRecord { return original.reportReadiness(of: mapRecord) }
        let (isReady, isMissed) = core.withLock { core in
            let isReady = core.isReady || core.node?.listen(self) ?? true
            core.wasAskedForReadiness = true
            // An operation that a queue or a group of this package will start counts as started.
            if core.machine.isStartUnderWay || core.host != nil || core.parent != nil { core.wasAskedAfterStart = true }
            guard !core.machine.isStarted else { return (isReady, false) }
            if isReady, core.extras == nil { return (true, false) }
            return (isReady, core.need().readiness.report(isReady))
        }
        if isMissed {
            DispatchQueue.global().async { [weak self] in self?.signalReadyIfLinked() }
        }
        return isReady
    }

    /// Returns the value of `isReady` for an operation that is mapped from this one.
    private func reportReadiness(of record: MapRecord) -> Bool {
        let (isReady, isMissed) = core.withLock { core in
            let isReady = core.isReady || core.node?.listen(self) ?? true
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
    /// Returns the mapped operations to announce as ready, because a Foundation queue has read that they are not.
    fileprivate func beginAnnouncements() -> [(ManagedOperation, MapRecord)] {
        all.compactMap { record in
            let wasDenied = record.readiness.wasDenied || ManagedOperation.announcesUnasked
            guard wasDenied, !record.wasStarted, let mapped = record.mapped else { return nil }
            record.readiness.beginAnnouncement()
            return (mapped, record)
        }
    }
}

/// The readiness values that Foundation has read from an operation with dependencies.
///
/// A queue reads `isReady` while it adds an operation, and stores the value afterward. The last dependency may end in
/// between, on another thread. The queue then overwrites the notification with the older value. When it next looks for
/// work, it stores the new value but does not start the operation, which would wait indefinitely. Therefore one more
/// notification follows when `true` is read after `false`, unless our own notification caused the read.
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

    /// Records a value that was read, and returns whether the reader needs another notification.
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
    /// A probe that finds out whether a Foundation queue holds an operation that it has not started.
    ///
    /// Starting such an operation manually is a mistake. Foundation on Linux then continues to use the operation after
    /// it was freed, and it has no API that detects this. The probe reads two private properties of the operation from
    /// its memory, which takes about a nanosecond. Reflection takes about as long as a queue needs for an operation, so
    /// it only finds the positions of the properties once.
    enum FoundationQueueProbe {
        /// Returns whether a Foundation queue holds the operation.
        ///
        /// - Parameter mayBeStarting: Whether an operation that its queue is starting at this moment counts.
        static func isHeld(_ operation: Operation, mayBeStarting: Bool) -> Bool {
            guard let layout, read(operation, at: layout.queue, as: UInt.self) != 0 else { return false }
            return mayBeStarting || read(operation, at: layout.state, as: UInt8.self) != layout.starting
        }

        /// Returns the name of the operation's state in Foundation, or an empty string if it cannot be found.
        static func state(of operation: Operation) -> String {
            guard let layout else { return "" }
            return layout.states[read(operation, at: layout.state, as: UInt8.self)] ?? ""
        }

        /// The layout of an operation in memory, or `nil` if a later version of Foundation has other properties.
        ///
        /// The properties of a class follow its header in the order of their declaration. Each begins at the next
        /// multiple of its alignment. The layout comes from a new operation, because reading the other properties of
        /// an operation in use would be a data race.
        ///
        /// The tuple contains the position of the pointer to the queue, which is 0 if no queue holds the operation, and
        /// the position of the state, which is one byte. It also contains the names of the states by their values in
        /// memory, and the state that a queue sets just before it calls `start()`.
        private static let layout: (queue: Int, state: Int, states: [UInt8: String], starting: UInt8)? = {
            let operation = Operation()
            let mirror = Mirror(reflecting: operation)
            guard mirror.superclassMirror?.children.isEmpty == true else { return nil }
            var (end, positions, states) = (2 * MemoryLayout<UInt>.size, [String: Int](), [UInt8: String]())
            var isConfirmed = false
            for (label, value) in mirror.children {
                let (position, size) = place(value, after: end)
                end = position + size
                positions[label ?? ""] = position
                if label == "__state", let state = value as? any RawRepresentable<UInt8> { states = names(like: state) }
                // The address of each object must be at its position. An object after both properties confirms their
                // positions.
                guard type(of: value) is AnyClass else { continue }
                let object = UInt(bitPattern: ObjectIdentifier(value as AnyObject))
                guard read(operation, at: position, as: UInt.self) == object else { return nil }
                isConfirmed = positions["__state"] != nil && positions["__queue"] != nil
            }
            guard isConfirmed, let queue = positions["__queue"], let state = positions["__state"],
                let starting = states.first(where: { $0.value == "starting" })?.key
            else { return nil }
            return (queue, state, states, starting)
        }()

        /// Returns the position and the size of a property after one that ends at `end`.
        private static func place<Value>(_ value: Value, after end: Int) -> (position: Int, size: Int) {
            let alignment = MemoryLayout<Value>.alignment
            return ((end + alignment - 1) / alignment * alignment, MemoryLayout<Value>.size)
        }

        /// Returns the names of all values of an enumeration of one byte.
        private static func names<State: RawRepresentable<UInt8>>(like state: State) -> [UInt8: String] {
            guard MemoryLayout<State>.size == 1 else { return [:] }
            let states = (UInt8.min...UInt8.max).compactMap { State(rawValue: $0) }
            return Dictionary(
                states.map { state in (withUnsafeBytes(of: state) { $0[0] }, "\(state)") },
                uniquingKeysWith: { first, _ in first })
        }

        private static func read<Value: BitwiseCopyable>(
            _ operation: Operation, at position: Int, as type: Value.Type
        ) -> Value {
            withExtendedLifetime(operation) {
                UnsafeRawPointer(Unmanaged.passUnretained(operation).toOpaque())
                    .load(fromByteOffset: position, as: type)
            }
        }
    }
#endif
