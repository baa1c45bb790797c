// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What came of the attempt to give an operation to a queue.
enum QueueClaim {
    case ready(QueueLevel)
    /// Its dependencies ended, and something else must let it begin.
    case held(QueueLevel)
    case waits(QueueLevel)
    /// It was cancelled before, and is to be ended at once.
    case cancelled
    case refused(Refusal)

    enum Refusal {
        case inQueue(String)
        case started
        case finished

        func error(_ operation: Operation, _ queue: String) -> QueueError {
            switch self {
            case .inQueue(let other): .alreadyAdded(operation.displayName, queue: queue, other: other)
            case .started: .alreadyStarted(operation.displayName, queue: queue)
            case .finished: .alreadyFinished(operation.displayName, queue: queue)
            }
        }
    }
}

/// Where an operation stands in the queue that holds it.
struct QueuePlace {
    enum Standing { case ready, held, waits, cancelled }

    var slot: QueueMachine.Slot
    var level: QueueLevel
    var standing: Standing
}

// What a queue of this package asks of the operations that it holds. The queue's lock may be held while `core` is taken.
extension ManagedOperation {
    /// Makes the operation one of the queue's, unless it is somebody else's.
    func claim(for engine: QueueEngine, _ slot: QueueMachine.Slot) -> QueueClaim {
        core.withLock { core in
            if let host = core.host { return .refused(.inQueue(host.name)) }
            if core.machine.isFinished { return .refused(.finished) }
            if core.isStartUnderWay { return .refused(.started) }
            core.host = engine
            core.slot = slot
            if core.machine.isCancelled { return .cancelled }
            guard core.isReady else { return .waits(core.level) }
            return core.isAdmitted ? .ready(core.level) : .held(core.level)
        }
    }

    /// Where it stands in that queue; nil if it has left it.
    func place(in engine: QueueEngine) -> QueuePlace? {
        core.withLock { core in
            guard core.host === engine else { return nil }
            return QueuePlace(slot: core.slot, level: core.level, standing: core.standing)
        }
    }

    /// Starts the operation for its queue, or asks for its admission if that is wanting.
    ///
    /// False, and it was not started, if it is not admitted, or if a dependency came in between.
    @discardableResult
    func beginHosted() -> Bool {
        var isPlain = true
        let action = move { core -> LifecycleMachine.StartAction? in
            guard core.isReady, core.isAdmitted else { return nil }
            isPlain = core.extras.map(\.isPlainAtStart) ?? true
            return core.machine.start(isReady: true, hasDelay: false)
        }
        guard let action else {
            seekAdmissionForQueue()
            return false
        }
        if isPlain, action == .run {
            signalExecuting()
            runBody()
        } else {
            perform(action)
        }
        return true
    }
}

extension ManagedOperation.Core {
    fileprivate var standing: QueuePlace.Standing {
        if machine.isCancelled { return .cancelled }
        guard isReady else { return .waits }
        return isAdmitted ? .ready : .held
    }
}
