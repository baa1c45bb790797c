// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import Synchronization

// How urgent an operation is, and that what it waits for is as urgent.
extension ManagedOperation {
    /// Whether some operation was ever less urgent than normal: as long as there is none, a normal one need not raise
    /// those that it waits for.
    private static let isAnyLow = Atomic(false)

    final func levelDidChange() {
        var (level, effective, host) = (QueueLevel.normal, QueueLevel.normal, nil as QueueEngine?)
        // Another thread may set it at the same time, so the latest value is applied.
        applyLatest({ QueueLevel(queuePriority, qualityOfService) }) { present in
            level = present
            (effective, host) = noteOwnLevel(present)
        }
        if level < .normal { raiseToDependents() }
        guard let host else { return }
        host.reconsider(self)
        raiseUpstream(to: effective)
    }

    private func noteOwnLevel(_ level: QueueLevel) -> (effective: QueueLevel, host: QueueEngine?) {
        if level < .normal { Self.isAnyLow.store(true, ordering: .sequentiallyConsistent) }
        return core.withLock { core in
            core.ownLevel = level
            return (core.urgency, core.host)
        }
    }

    /// Those that wait for this operation may have taken it for as urgent as they are, and not have raised it.
    private func raiseToDependents() {
        for dependent in nodeIfAny?.listeningDownstream ?? [] {
            raise(to: dependent.core.withLock { $0.levelOfUpstream })
        }
    }

    /// Makes what this operation waits for at least as urgent as it is, once it is in a queue.
    final func raiseUpstreamIfNeeded(_ level: QueueLevel) {
        guard Self.mayRaise(level) else { return }
        raiseUpstream(to: level == .awaited ? core.withLock { $0.urgency } : level)
    }

    /// Whether one that is so urgent may wait for one that is less.
    static func mayRaise(_ level: QueueLevel) -> Bool {
        level > .normal || level > .veryLow && isAnyLow.load(ordering: .sequentiallyConsistent)
    }

    /// Makes the operation, and what it waits for, at least that urgent.
    final func raise(to level: QueueLevel) {
        if raiseItself(to: level) { raiseUpstream(to: level) }
    }

    /// Makes the operation the first of all, for a body that is so urgent waits for it and holds a thread; what it waits for
    /// is made as urgent as the body.
    final func raise(forBodyOf urgency: QueueLevel) {
        // In a loop and not in a recursion: groups are in groups, to any depth.
        var raised: [ManagedOperation] = [self]
        var next = 0
        while next < raised.count {
            let operation = raised[next]
            next += 1
            guard operation.becomeAwaited(by: urgency), let group = operation.groupEngine else { continue }
            raised += group.presentChildren
        }
    }

    /// False if it was the first of all before, or has ended.
    private func becomeAwaited(by urgency: QueueLevel) -> Bool {
        raise(to: urgency)
        let (isNew, host) = core.withLock { core -> (Bool, QueueEngine?) in
            guard !core.isAwaited, !core.machine.isFinished else { return (false, nil) }
            core.isAwaited = true
            return (true, core.host)
        }
        host?.reconsider(self)
        return isNew
    }

    private func raiseUpstream(to level: QueueLevel) {
        var next = nodeIfAny?.liveUpstream ?? []
        while let operation = next.popLast() {
            if operation.raiseItself(to: level) { next += operation.nodeIfAny?.liveUpstream ?? [] }
        }
    }

    /// False if it was that urgent already, and with it what it waits for.
    private func raiseItself(to level: QueueLevel) -> Bool {
        let (isRaised, host) = core.withLock { core -> (Bool, QueueEngine?) in
            guard core.raisedLevel < level, !core.machine.isFinished else { return (false, nil) }
            core.raisedLevel = level
            return (true, core.host)
        }
        host?.reconsider(self)
        return isRaised
    }
}

extension ManagedOperation.Core {
    /// How urgent that is for which it waits from now on: its own priority counts once it is in a queue.
    var levelOfUpstream: QueueLevel { host == nil ? raisedLevel : urgency }
}
