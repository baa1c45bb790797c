// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

extension ManagedOperation {
    /// Adds an edge to an operation of any kind, and with it an input that comes from an operation of this package.
    @discardableResult
    final func connect(
        to upstream: Operation, judge: DependencyEdge.Judge?, input: NewDependencyInput? = nil
    ) throws(DependencyError) -> DependencyEdge {
        if let upstream = upstream as? ManagedOperation {
            return try DependencyGraph.connect(self, to: upstream, judge: judge, input: input)
        }
        return try connect(toForeign: upstream, judge: judge)
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
        removeEdges(to: upstream) { $0.remove(upstream) }
    }

    /// Takes back just this edge.
    final func remove(_ edge: DependencyEdge, to upstream: Operation) {
        removeEdges(to: upstream) { $0.remove(edge) }
    }

    private func removeEdges(to upstream: Operation, _ remove: (inout DependencyLinks) -> [DependencyLinks.Upstream]) {
        guard let node = nodeIfAny else { return }
        var inputs: [DependencyInput] = []
        let (removed, isClear) = core.withLock { core in
            let removal = node.remove(remove)
            if let extras = core.extras { inputs = extras.removeInputs(of: removal.removed) }
            return removal
        }
        withExtendedLifetime(inputs) {}
        for link in removed { withExtendedLifetime(link.edge.takeJudge()) {} }
        if !removed.isEmpty, let upstream = upstream as? ManagedOperation {
            upstream.forgetCutEdges(removed.count)
        }
        if isClear { dependenciesDidEnd() }
    }

    /// Some of those that waited for it do so no more.
    final func forgetCutEdges(_ count: Int) { nodeIfAny?.forgetCutEdges(count) }

    /// The operation's place in the graph, made now if it had none.
    final var node: DependencyNode { core.withLock { $0.needNode() } }

    final var nodeIfAny: DependencyNode? { core.withLock { $0.node } }

    /// Cancels the operation for a reason of its surroundings, without a word if it was too late.
    final func cancelIfUndecided(because cause: CancellationCause) {
        cancel(because: cause) { $0.machine.ending == nil }
    }
}
