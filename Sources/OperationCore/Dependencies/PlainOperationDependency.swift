// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

// Edges between operations of this package and Foundation operations of any other kind.

extension ManagedOperation {
    /// Waits for an operation that is not of this package.
    ///
    /// A cycle that runs through such operations cannot be seen.
    func connect(
        toForeign upstream: Operation, judge: DependencyEdge.Judge?
    ) throws(DependencyError) -> DependencyEdge {
        let edge = DependencyEdge(to: self, node: node, judge: judge)
        let watcher = PlainOperationWatcher(upstream) { [weak edge] operation in edge?.upstreamDidEnd(operation) }
        let insertion = core.withLock { core in
            core.insertUpstream(upstream, edge: edge, .watcher(watcher), isPlain: judge == nil)
        }
        switch insertion {
        case .added:
            signalDependencyAdded()
            watcher.begin()
        case .needless: break
        case .tooLate: throw .alreadyStarted(displayName, dependency: upstream.displayName)
        }
        return edge
    }
}

/// Calls back once when a Foundation operation finished, through an edge of Foundation's own.
///
/// The edge leads to an operation in a private queue, whose body calls back. Foundation decides under its lock whether the
/// upstream operation still has to end, so no end is lost. A key-value observer can miss one: it is not notified of a
/// change that was announced before it was registered and made after it looked.
///
/// Apple platforms use it. Linux has the watcher below, because a queue there may free the operation while the upstream
/// one still points to it.
package final class QueuedWatcher: Sendable {
    private static let queue: OperationQueue = {
        let queue = OperationQueue()
        queue.name = "OperationKit.Dependencies"
        return queue
    }()

    private let relay: Relay

    package init(_ upstream: Operation, onEnd: @escaping @Sendable (Operation) -> Void) {
        relay = Relay(upstream, onEnd: onEnd)
    }

    package func begin() { relay.begin(in: Self.queue) }

    // A canceled operation is ready, so the queue frees it although the upstream operation has not ended.
    deinit { relay.detach() }

    private final class Relay: Operation, @unchecked Sendable {
        // Sendable: the mutable state is behind its lock.

        private let task: Locked<(upstream: Operation, onEnd: @Sendable (Operation) -> Void)?>

        init(_ upstream: Operation, onEnd: @escaping @Sendable (Operation) -> Void) {
            task = Locked((upstream, onEnd))
        }

        func begin(in queue: OperationQueue) {
            guard let upstream = task.withLock({ $0?.upstream }) else { return }
            addDependency(upstream)
            queue.addOperation(self)
        }

        func detach() {
            withExtendedLifetime(task.withLock { exchange(&$0, with: nil) }) {}
            cancel()
        }

        override func main() {
            guard let (upstream, onEnd) = task.withLock({ exchange(&$0, with: nil) }) else { return }
            onEnd(upstream)
        }
    }
}

#if canImport(ObjectiveC)
    typealias PlainOperationWatcher = QueuedWatcher
#else
    /// Calls back once when a Foundation operation finished, and holds nothing that could outlive it.
    ///
    /// Foundation on Linux keeps a pointer to a dependent that it does not retain, so a dependent must not go before
    /// the operation it depends on unless it takes itself out first, and taking out is not possible while the dependent
    /// is being freed. So the dependent that Foundation sees is this watcher, which its owner frees only after `detach`.
    final class PlainOperationWatcher: Sendable {
        private let probe: Probe

        init(_ upstream: Operation, onEnd: @escaping @Sendable (Operation) -> Void) {
            probe = Probe(upstream, onEnd: onEnd)
        }

        func begin() { probe.begin() }

        deinit { probe.detach() }

        /// An operation that is never run: Foundation asks it whether it is ready when its dependency finished.
        private final class Probe: Operation, @unchecked Sendable {
            // Sendable: the mutable state is behind its lock.

            private struct State {
                var upstream: Operation?
                var onEnd: (@Sendable (Operation) -> Void)?
                var hasBegun = false
            }

            private let state: Locked<State>

            init(_ upstream: Operation, onEnd: @escaping @Sendable (Operation) -> Void) {
                state = Locked(State(upstream: upstream, onEnd: onEnd))
            }

            func begin() {
                guard let upstream = state.withLock({ $0.upstream }) else { return }
                addDependency(upstream)
                state.withLock { $0.hasBegun = true }
                callBackIfReady()
            }

            func detach() {
                let (upstream, onEnd) = state.withLock { state in
                    (exchange(&state.upstream, with: nil), exchange(&state.onEnd, with: nil))
                }
                withExtendedLifetime(onEnd) {}
                // Takes the lock of the upstream operation, so that it either sees this one whole or not at all.
                if let upstream { removeDependency(upstream) }
            }

            override var isReady: Bool {
                let isReady = super.isReady
                if isReady { callBackIfReady() }
                return isReady
            }

            private func callBackIfReady() {
                guard let upstream = state.withLock({ $0.hasBegun ? $0.upstream : nil }), upstream.isFinished else {
                    return
                }
                state.withLock { exchange(&$0.onEnd, with: nil) }?(upstream)
            }
        }
    }

    /// What stands for an operation of this package among the dependencies of a foreign one.
    ///
    /// Foundation's own edge would leave a pointer behind when the foreign operation is freed first.
    final class PlainOperationGate: Operation, @unchecked Sendable {
        // Sendable: nothing in it changes after init but the flag, which is behind its lock; the weak reference is loaded
        // atomically.

        let source: ManagedOperation
        private weak var dependent: Operation?
        private let phase = Locked(Phase.shut)
        // Sendable: written once, before who adds the gate lets go of it, and read in `deinit`.
        private var endAction: UInt64?

        private enum Phase { case shut, opening, open }

        /// Whether the dependent has been told, and counts this dependency no more.
        var isOpen: Bool { phase.withLock { $0 == .open } }

        init(from source: ManagedOperation, to dependent: Operation) {
            self.source = source
            self.dependent = dependent
            super.init()
            name = source.displayName
        }

        deinit {
            // The dependent went first, or takes the dependency back: the source need not remember it.
            if let endAction { source.removeEndAction(endAction) }
        }

        /// Opens the gate when the source ends, which does not keep the gate alive.
        ///
        /// The dependent keeps it, and it keeps the source, as Foundation's own edge does.
        func openAtEnd() {
            endAction = source.whenEnded { [weak self] in self?.open() }
        }

        /// Lets the dependent go on, if it is still there.
        func open() {
            guard let dependent else { return }
            let isFirst = phase.withLock { phase in
                guard phase == .shut else { return false }
                phase = .opening
                return true
            }
            guard isFirst else { return }
            if FoundationQueueProbe.isHeld(self, mayBeStarting: true) {
                // Somebody gave this to a queue, which must be the one to start it.
                didChangeValue(forKey: "isReady")
            } else {
                ThreadNotes.performEnd(of: self) { start() }
            }
            phase.withLock { $0 = .open }
            Self.remind(dependent)
        }

        /// Not before it was opened, even in a queue that somebody gave it to.
        override var isReady: Bool { phase.withLock { $0 != .shut } && super.isReady }

        /// Announces once more that the dependent is ready, if a queue was just taking it in.
        ///
        /// The queue may have asked before this gate opened and note the older answer after it: see
        /// ``ReadinessReports``, which such an operation cannot have.
        private static func remind(_ dependent: Operation) {
            switch FoundationQueueProbe.state(of: dependent) {
            // No queue has asked: it will be told the truth.
            case "initialized": break
            // Between the question and the note.
            case "enqueuing": DispatchQueue.global().async { remind(dependent) }
            default: dependent.didChangeValue(forKey: "isReady")
            }
        }
    }

    extension Operation {
        /// Makes an operation of any kind wait for one of this package.
        ///
        /// On Linux this is safe where Foundation's own method is not: the waiting operation may be freed before the
        /// other one ends. Among `dependencies` it shows as an operation of the same name.
        public func addDependency(_ operation: ManagedOperation) {
            if let own = self as? ManagedOperation { return own.addReportedDependency(on: operation) }
            let gate = PlainOperationGate(from: operation, to: self)
            addDependency(gate as Operation)
            gate.openAtEnd()
        }

        /// Takes a dependency on an operation of this package back.
        public func removeDependency(_ operation: ManagedOperation) {
            if let own = self as? ManagedOperation { return own.removeEdges(to: operation) }
            for case let gate as PlainOperationGate in dependencies where gate.source.life === operation.life {
                // Foundation does not count off a dependency that is removed before it finished, so this one finishes
                // first; where another thread is just seeing to that, it stays in the list, done. From a cancelled
                // operation it would be counted off twice, and there it no longer matters.
                gate.open()
                if gate.isOpen, !isCancelled { removeDependency(gate as Operation) }
            }
            removeDependency(operation as Operation)
        }
    }
#endif
