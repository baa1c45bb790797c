// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

// Edges between operations of this package and Foundation operations of any other kind.

extension ManagedOperation {
    /// Makes the operation wait for a plain `Foundation.Operation`.
    ///
    /// A cycle through plain operations is not detected.
    func connect(
        toPlain upstream: Operation, judge: DependencyEdge.Judge?
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

/// Calls a closure once when a Foundation operation has finished, through a dependency of Foundation.
///
/// The dependent is an operation in a private queue, whose body calls the closure. Foundation decides under its lock
/// whether the upstream operation still has to end, so no end is lost. A key-value observer can miss an end. It is not
/// notified of a change that was announced before it was registered and made after it looked.
///
/// Apple platforms use this watcher. Linux uses the one below, because a queue there may free the dependent while the
/// upstream operation still points to it.
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
    /// Calls a closure once when a Foundation operation has finished, and holds nothing that could outlive the watcher.
    ///
    /// Foundation on Linux keeps an unretained pointer to a dependent. So a dependent that is freed before its
    /// dependency must first remove the dependency, which is not possible while it is being freed. Therefore Foundation
    /// gets a separate dependent, which this watcher frees only after `detach`.
    final class PlainOperationWatcher: Sendable {
        private let probe: Probe

        init(_ upstream: Operation, onEnd: @escaping @Sendable (Operation) -> Void) {
            probe = Probe(upstream, onEnd: onEnd)
        }

        func begin() { probe.begin() }

        deinit { probe.detach() }

        /// An operation that never runs, and whose `isReady` Foundation reads when the dependency has finished.
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
                // This takes the lock of the upstream operation, which then sees this dependent either completely or
                // not at all.
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

    /// The operation that represents an operation of this package among the dependencies of a plain one.
    ///
    /// Foundation's own edge would leave a pointer behind if the plain operation is freed first.
    final class PlainOperationGate: Operation, @unchecked Sendable {
        // Sendable: nothing in it changes after init but the flag, which is behind its lock; the weak reference is loaded
        // atomically.

        let source: ManagedOperation
        private weak var dependent: Operation?
        private let phase = Locked(Phase.shut)
        // Sendable: written once, before the thread that adds the gate releases it, and read in `deinit`.
        private var endAction: UInt64?

        private enum Phase { case shut, opening, open }

        /// Whether the dependent was notified, and no longer counts this dependency.
        var isOpen: Bool { phase.withLock { $0 == .open } }

        init(from source: ManagedOperation, to dependent: Operation) {
            self.source = source
            self.dependent = dependent
            super.init()
            name = source.displayName
        }

        deinit {
            // The dependent was freed first or removes the dependency, so the source need not remember it.
            if let endAction { source.removeEndAction(endAction) }
        }

        /// Opens the gate when the source ends.
        ///
        /// The source does not keep the gate alive. The dependent keeps the gate, and the gate keeps the source, as
        /// with Foundation's own edge.
        func openAtEnd() {
            endAction = source.whenEnded { [weak self] in self?.open() }
        }

        /// Lets the dependent continue, if it still exists.
        func open() {
            guard let dependent else { return }
            let isFirst = phase.withLock { phase in
                guard phase == .shut else { return false }
                phase = .opening
                return true
            }
            guard isFirst else { return }
            if FoundationQueueProbe.isHeld(self, mayBeStarting: true) {
                // The gate was added to a queue, which must be the one to start it.
                didChangeValue(forKey: "isReady")
            } else {
                ThreadNotes.performEnd(of: self) { start() }
            }
            phase.withLock { $0 = .open }
            Self.remind(dependent)
        }

        /// Whether the gate was opened, which must come first even if the gate was added to a queue.
        override var isReady: Bool { phase.withLock { $0 != .shut } && super.isReady }

        /// Announces once more that the dependent is ready, in case a queue is just taking it in.
        ///
        /// The queue may have read `isReady` before this gate opened, and may store the older answer afterward. See
        /// ``ReadinessReports``, which a plain operation cannot have.
        private static func remind(_ dependent: Operation) {
            switch FoundationQueueProbe.state(of: dependent) {
            // No queue has asked, so none has an older answer.
            case "initialized": break
            // The queue has asked, and has not stored the answer.
            case "enqueuing": DispatchQueue.global().async { remind(dependent) }
            default: dependent.didChangeValue(forKey: "isReady")
            }
        }
    }

    extension Operation {
        /// Makes an operation of any kind wait for an operation of this package.
        ///
        /// This overload exists only on Linux, where Foundation's own method may crash if the waiting operation is
        /// freed before the other operation ends. The `dependencies` of a plain `Foundation.Operation` then contain
        /// another operation with the same name.
        public func addDependency(_ operation: ManagedOperation) {
            if let own = self as? ManagedOperation { return own.addReportedDependency(on: operation) }
            let gate = PlainOperationGate(from: operation, to: self)
            addDependency(gate as Operation)
            gate.openAtEnd()
        }

        /// Removes a dependency on an operation of this package.
        public func removeDependency(_ operation: ManagedOperation) {
            if let own = self as? ManagedOperation { return own.removeEdges(to: operation) }
            for case let gate as PlainOperationGate in dependencies where gate.source.life === operation.life {
                // Foundation does not count off a dependency that is removed before it finished, so the gate finishes
                // first. If another thread is just opening the gate, the gate stays in the list as finished. A canceled
                // operation would count off the gate twice, so it stays there as well.
                gate.open()
                if gate.isOpen, !isCancelled { removeDependency(gate as Operation) }
            }
            removeDependency(operation as Operation)
        }
    }
#endif
