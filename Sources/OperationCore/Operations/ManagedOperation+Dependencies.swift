// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

extension ManagedOperation {
    /// Adds an edge to an operation of any kind, and an input if the operation is of this package.
    @discardableResult
    final func connect(
        to upstream: Operation, judge: DependencyEdge.Judge?, input: NewDependencyInput? = nil
    ) throws(OperationSetupError) -> DependencyEdge {
        if let upstream = (upstream as? ManagedOperation)?.held {
            let judge = judge.map { judging($0, upstream) }
            return try DependencyInsertion.connect(life, to: upstream, judge: judge, input: input)
        }
        let judge = judge.map { judging($0, upstream) }
        return try life.connect(toPlain: upstream, judge: judge)
    }

    /// Makes a rule apply to the mapped operations that the user named, although the edge connects their originals.
    private func judging(_ judge: @escaping DependencyEdge.Judge, _ upstream: Operation) -> DependencyEdge.Judge {
        var named = upstream as? ManagedOperation
        if named?.original == nil { named = nil }
        if original != nil { return failingMap(judge, named) }
        guard let named else { return judge }
        return { _ in judge(named) }
    }

    /// Makes this mapped operation fail with an error of its own type if the rule says so, and cancels the original.
    private func failingMap(
        _ judge: @escaping DependencyEdge.Judge, _ named: ManagedOperation?
    ) -> DependencyEdge.Judge {
        { [weak self] upstream in
            let verdict = judge(named ?? upstream)
            guard case .fail(let fail) = verdict else { return verdict }
            let cause = UnsuccessfulDependency(named ?? upstream)?.cause ?? .requested
            return .fail { [weak self] original in
                // The reference keeps the operation from being freed under the lock.
                let mapped = self
                (original as? ManagedOperation)?.cancel(because: cause) { core in
                    guard core.machine.ending == nil else { return false }
                    if let mapped { fail(mapped) }
                    return true
                }
                extendLifetime(mapped)
            }
        }
    }

    /// Adds a plain edge for the inherited method, which cannot throw.
    final func addReportedDependency(on upstream: Operation) {
        do {
            try connect(to: upstream, judge: nil)
        } catch {
            OperationDiagnostics.report(.dependencyRefused, by: self, error.message)
        }
    }

    final func removeEdges(to upstream: Operation) {
        let upstream = upstream.originalOrSelf
        removeEdges(to: upstream) { $0.remove(upstream) }
    }

    /// Removes this edge, and no other edge to the same operation.
    final func remove(_ edge: DependencyEdge, to upstream: Operation) {
        removeEdges(to: upstream) { $0.remove(edge, to: upstream.originalOrSelf) }
    }

    private func removeEdges(to upstream: Operation, _ remove: (inout DependencyLinks) -> [DependencyLinks.Upstream]) {
        guard let node = nodeIfAny else { return }
        var inputs: [DependencyInput] = []
        let (removed, isClear) = core.withLock { core in
            let removal = node.remove(remove)
            if let extras = core.extras { inputs = extras.removeInputs(of: removal.removed) }
            return removal
        }
        extendLifetime(inputs)
        for link in removed { extendLifetime(link.edge.takeJudge()) }
        if !removed.isEmpty, let upstream = upstream as? ManagedOperation {
            upstream.forgetCutEdges(removed.count)
        }
        if isClear { life.dependenciesDidEnd() }
    }

    /// Notes that some dependents no longer wait for this operation.
    final func forgetCutEdges(_ count: Int) { nodeIfAny?.forgetCutEdges(count) }

    /// Returns the node of the operation in the graph, or `nil` if the operation has ended.
    ///
    /// If there is no node, the method creates one in that component or in a new component.
    final func node(in component: DependencyComponent? = nil) -> OperationNode? {
        core.withLock { core in
            if let node = core.node { return node }
            if core.machine.isFinished { return nil }
            let made = OperationNode(in: component)
            core.node = made
            return made
        }
    }

    final var nodeIfAny: OperationNode? { core.withLock { $0.node } }

    /// The operations that wait for this one.
    package final var listeningDownstream: [ManagedOperation] { nodeIfAny?.listeningDownstream ?? [] }

    /// Cancels the operation, unless it has its outcome.
    ///
    /// The package itself cancels operations in this way, for example after a timeout or because of a dependency. If
    /// the operation has an outcome, this changes nothing, and the handler of the outcome is called. Only the public
    /// methods that cancel an operation, a group, an owner or a queue keep that handler from beginning.
    package final func cancelIfUndecided(because cause: CancellationCause) {
        cancel(because: cause) { $0.machine.ending == nil }
    }
}

/// A closure that passes the results of one or more dependencies to an operation just before its body.
///
/// If all of its edges are removed, the input is removed, too. If only some of them are removed, it can no longer be
/// used.
struct DependencyInput {
    fileprivate var edgeCount: Int
    /// Whether some of the edges were removed and others were not.
    private(set) var isBroken = false
    let feed: @Sendable (ManagedOperation) -> Void

    /// Notes that an edge was removed, and returns whether it was the last one.
    mutating func removeEdge() -> Bool {
        edgeCount -= 1
        isBroken = true
        return edgeCount == 0
    }
}

/// An input that is added in one step with its last edge, because the operation may be started at any moment.
struct NewDependencyInput {
    /// The other edges, which were added before.
    var earlierEdges: [DependencyEdge] = []
    let feed: @Sendable (ManagedOperation) -> Void
}

extension ManagedOperation.Core {
    /// Adds an input, which is used just before the body, after the inputs that were added before.
    mutating func add(_ input: NewDependencyInput, lastEdge: DependencyEdge?) {
        let extras = need()
        // The edges name the input by this number. No other input of the operation has the same number.
        let number = UInt32(truncatingIfNeeded: extras.inputs.lastID + 1)
        for edge in input.earlierEdges { edge.inputNumber = number }
        lastEdge?.inputNumber = number
        let edgeCount = input.earlierEdges.count + (lastEdge == nil ? 0 : 1)
        extras.inputs.append(DependencyInput(edgeCount: edgeCount, feed: input.feed), id: UInt64(number))
    }
}

extension RareOperationState {
    /// Removes the inputs whose edges were all removed, and returns them, to be released without holding the lock.
    func removeInputs(of links: [DependencyLinks.Upstream]) -> [DependencyInput] {
        var removed: [DependencyInput] = []
        for number in links.compactMap(\.edge.inputNumber) {
            let isLast = inputs.update(UInt64(number)) { $0.removeEdge() }
            if isLast == true, let input = inputs.remove(UInt64(number)) { removed.append(input) }
        }
        return removed
    }
}

/// An operation that ended without a result, as its dependents see it.
struct UnsuccessfulDependency {
    let failure: OperationFailure<any Error>
    let cause: CancellationCause

    /// Returns `nil` if the operation succeeded, or if it is of a kind that does not report failures.
    init?(_ operation: Operation) {
        let name = operation.displayName
        if let error = (operation as? ManagedOperation)?.failureAsError {
            failure = .failed(error)
            cause = .dependencyFailed(name, error)
        } else if operation.isCancelled {
            let upstreamCause = (operation as? ManagedOperation)?.cancellationCause
            failure = .cancelled(upstreamCause ?? .requested)
            cause = .dependencyCancelled(name, upstreamCause)
        } else {
            return nil
        }
    }

    /// Returns a verdict that makes the waiting operation fail with an error of its own type.
    func failing<ErrorType: Error>(
        with makeError: (OperationFailure<any Error>) -> ErrorType
    ) -> DependencyEdge.Verdict {
        ThreadNotes.current.worker?.reportChanges()
        let error = makeError(failure)
        return .fail { downstream in
            (downstream as? ManagedOperation)?.failByRule(with: error)
        }
    }
}
