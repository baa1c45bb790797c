// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import Synchronization

/// The urgency of an entry in a queue, where a smaller rank is more urgent.
struct QueueLevel: Comparable {
    let rank: UInt8

    /// A body that holds a thread waits for this entry.
    static let awaited = QueueLevel(rank: 0)
    static let veryHigh = QueueLevel(rank: 1)
    static let high = QueueLevel(rank: 2)
    static let normal = QueueLevel(rank: 3)
    static let low = QueueLevel(rank: 4)
    static let veryLow = QueueLevel(rank: 5)

    static let count = 6

    /// Returns whether the left level is less urgent than the right one.
    static func < (left: QueueLevel, right: QueueLevel) -> Bool { left.rank > right.rank }

    init(_ priority: Operation.QueuePriority) {
        switch priority.rawValue {
        case Operation.QueuePriority.veryHigh.rawValue...: self = .veryHigh
        case 1...: self = .high
        case 0: self = .normal
        case Operation.QueuePriority.low.rawValue...: self = .low
        default: self = .veryLow
        }
    }

    /// Creates the level of a quality of service, for an operation without its own priority.
    init(_ quality: QualityOfService) {
        switch quality {
        case .userInteractive: self = .veryHigh
        case .userInitiated: self = .high
        case .utility: self = .low
        case .background: self = .veryLow
        default: self = .normal
        }
    }

    /// Creates the level that results from a priority and a quality of service.
    init(_ priority: Operation.QueuePriority, _ quality: QualityOfService) {
        let level = QueueLevel(priority)
        self = level == .normal ? QueueLevel(quality) : level
    }

    private init(rank: UInt8) { self.rank = rank }
}

// The urgency of an operation, which its dependencies inherit.
extension ManagedOperation {
    /// Whether any operation was ever less urgent than normal.
    ///
    /// Until then, an operation with normal urgency does not have to raise its dependencies.
    private static let isAnyLow = Atomic(false)

    final func levelDidChange() {
        var (level, effective, host) = (QueueLevel.normal, QueueLevel.normal, nil as HostQueue?)
        // Another thread may set the level at the same time, so the latest value is applied.
        applyLatest({ QueueLevel(queuePriority, qualityOfService) }) { present in
            level = present
            (effective, host) = recordOwnLevel(present)
        }
        if level < .normal { raiseToDependents() }
        guard let host else { return }
        host.reconsider(self)
        raiseUpstream(to: effective)
    }

    private func recordOwnLevel(_ level: QueueLevel) -> (effective: QueueLevel, host: HostQueue?) {
        if level < .normal { Self.isAnyLow.store(true, ordering: .sequentiallyConsistent) }
        return core.withLock { core in
            core.ownLevel = level
            return (core.urgency, core.host)
        }
    }

    /// Raises this operation for its dependents, which may not have raised it while it was as urgent as they are.
    private func raiseToDependents() {
        for dependent in nodeIfAny?.listeningDownstream ?? [] {
            raise(to: dependent.core.withLock { $0.levelOfUpstream })
        }
    }

    /// Makes the dependencies of this operation at least as urgent as the operation, which is now in a queue.
    final func raiseUpstreamIfNeeded(_ level: QueueLevel) {
        guard Self.mayRaise(level) else { return }
        raiseUpstream(to: level == .awaited ? core.withLock { $0.urgency } : level)
    }

    /// Returns whether an operation of this level may wait for a less urgent operation.
    static func mayRaise(_ level: QueueLevel) -> Bool {
        level > (isAnyLow.load(ordering: .sequentiallyConsistent) ? .veryLow : .normal)
    }

    /// Makes the operation and its dependencies at least this urgent.
    final func raise(to level: QueueLevel) {
        if raiseItself(to: level) { raiseUpstream(to: level) }
    }

    /// Makes the operation the most urgent one, because a body waits for it and blocks a thread.
    ///
    /// Its dependencies become as urgent as the body.
    final func raise(forBodyOf urgency: QueueLevel) {
        // Use a loop instead of a recursion, because groups can be nested to any depth.
        var raised: [ManagedOperation] = [self]
        var next = 0
        while next < raised.count {
            let operation = raised[next]
            next += 1
            guard operation.becomeAwaited(by: urgency), let group = operation.ownGroup else { continue }
            raised += group.presentChildren
        }
    }

    /// Returns `false` if the operation was already awaited or has ended.
    private func becomeAwaited(by urgency: QueueLevel) -> Bool {
        raise(to: urgency)
        let (isNew, host) = core.withLock { core -> (Bool, HostQueue?) in
            guard !core.isAwaited, !core.machine.isFinished else { return (false, nil) }
            core.isAwaited = true
            return (true, core.host)
        }
        host?.reconsider(self)
        return isNew
    }

    private func raiseUpstream(to level: QueueLevel) {
        var raised = awaited
        var next = 0
        while next < raised.count {
            let operation = raised[next]
            next += 1
            if operation.raiseItself(to: level) { raised += operation.awaited }
        }
    }

    /// The dependencies that have not ended and, if this operation is a group, its children.
    private var awaited: [ManagedOperation] {
        (nodeIfAny?.liveUpstream ?? []) + (ownGroup?.presentChildren.map(\.life) ?? [])
    }

    /// Returns `false` if the operation and its dependencies were already that urgent.
    private func raiseItself(to level: QueueLevel) -> Bool {
        let (isRaised, host) = core.withLock { core -> (Bool, HostQueue?) in
            guard core.raisedLevel < level, !core.machine.isFinished else { return (false, nil) }
            core.raisedLevel = level
            return (true, core.host)
        }
        host?.reconsider(self)
        return isRaised
    }
}

extension ManagedOperation.Core {
    /// The urgency that dependencies inherit, which includes the operation's own priority once it is in a queue.
    var levelOfUpstream: QueueLevel { host == nil ? raisedLevel : urgency }
}
