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
        let level = QueueLevel(queuePriority, qualityOfService)
        if level < .normal { Self.isAnyLow.store(true, ordering: .relaxed) }
        let (effective, host) = core.withLock { core in
            core.ownLevel = level
            return (core.level, core.host)
        }
        guard let host else { return }
        host.reconsider(self)
        raiseUpstream(to: effective)
    }

    /// Makes what this operation waits for at least as urgent as it is, once it is in a queue.
    final func raiseUpstreamIfNeeded(_ level: QueueLevel) {
        if Self.mayRaise(level) { raiseUpstream(to: level) }
    }

    /// Whether one that is so urgent may wait for one that is less.
    static func mayRaise(_ level: QueueLevel) -> Bool {
        level > .normal || level > .veryLow && isAnyLow.load(ordering: .relaxed)
    }

    /// Makes the operation, and what it waits for, at least that urgent.
    final func raise(to level: QueueLevel) {
        if raiseItself(to: level) { raiseUpstream(to: level) }
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
    var levelOfUpstream: QueueLevel { host == nil ? raisedLevel : level }
}
