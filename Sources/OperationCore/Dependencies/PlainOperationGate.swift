// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

#if !canImport(ObjectiveC)
    /// The operation that represents an operation from this package among the dependencies of a plain one.
    ///
    /// Foundation's own edge would leave a pointer behind if the plain operation is freed first.
    final class PlainOperationGate: Operation, @unchecked Sendable {
        // Sendable: nothing in it changes after init but the flag, which is protected by its lock; the weak reference
        // is loaded atomically.

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
            // No queue has read the value, so no queue has stored an older value.
            case "initialized": break
            // The queue has read the value but has not stored it yet.
            case "enqueuing": DispatchQueue.global().async { remind(dependent) }
            default: dependent.didChangeValue(forKey: "isReady")
            }
        }
    }

    extension Operation {
        /// Makes an operation of any kind wait until an operation from this package has ended.
        ///
        /// This overload exists only on Linux, where Foundation's own method can crash if the waiting operation is
        /// freed before the other operation ends. After the call, the `dependencies` of a plain `Foundation.Operation`
        /// contain a substitute with the same name instead of the passed operation.
        ///
        /// - Parameter operation: The operation that must end first.
        public func addDependency(_ operation: ManagedOperation) {
            if let own = self as? ManagedOperation { return own.addReportedDependency(on: operation) }
            let gate = PlainOperationGate(from: operation, to: self)
            addDependency(gate as Operation)
            gate.openAtEnd()
        }

        /// Removes a dependency on an operation from this package.
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
