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
        var inputs: [DependencyInput] = []
        let (removed, isReady) = core.withLock { core -> ([DependencyLinks.Upstream], Bool) in
            guard let extras = core.extras else { return ([], false) }
            let before = extras.links.unended
            let removed = remove(&extras.links)
            inputs = extras.removeInputs(of: removed)
            return (removed, before > 0 && extras.links.unended == 0)
        }
        withExtendedLifetime(inputs) {}
        for link in removed { withExtendedLifetime(link.edge.takeJudge()) {} }
        if !removed.isEmpty, let upstream = upstream as? ManagedOperation {
            upstream.forgetCutEdges(removed.count)
        }
        if isReady { dependenciesDidEnd() }
    }

    /// Some of those that waited for it do so no more.
    final func forgetCutEdges(_ count: Int) {
        let forgotten = core.withLock { $0.extras?.links.noteCutDownstream(count) }
        withExtendedLifetime(forgotten) {}
    }

    /// One of those it waits for ended.
    final func dependencyDidEnd() {
        let isReady = core.withLock { core in
            guard let extras = core.extras else { return false }
            extras.links.noteEnd()
            return extras.links.unended == 0
        }
        if isReady { dependenciesDidEnd() }
    }

    final func releaseDependents(_ edges: [DependencyEdge]) {
        for edge in edges { edge.upstreamDidEnd(self) }
    }

    /// Cancels the operation for a reason of its surroundings, without a word if it was too late.
    final func cancelIfUndecided(because cause: CancellationCause) {
        cancel(because: cause) { $0.machine.ending == nil }
    }
}
