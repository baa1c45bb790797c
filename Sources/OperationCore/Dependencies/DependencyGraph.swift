// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Adds edges between operations of this package, and refuses those that would close a cycle.
///
/// Adding is the only thing that needs to see more than two operations. It is done under one lock for the process, so
/// that two threads cannot each add half of a cycle; ends, starts and cancellations never take it.
///
/// A cycle that runs through a foreign operation or through a ``MappedOperation``, which waits for its original without an
/// edge, is not seen.
enum DependencyGraph {
    private static let lock = Locked(())

    /// Makes `downstream` wait for `upstream`.
    ///
    /// An edge that `isImplied` by others closes no cycle, and none is looked for.
    static func connect(
        _ downstream: ManagedOperation, to upstream: ManagedOperation, judge: DependencyEdge.Judge?,
        input: NewDependencyInput? = nil, isImplied: Bool = false
    ) throws(DependencyError) -> DependencyEdge {
        guard downstream !== upstream else { throw .cycle([downstream.displayName, downstream.displayName]) }
        // The search holds on to operations whose last other reference may go meanwhile. They are let go of after the
        // lock, since freeing an operation runs what its user wrote.
        var search: CycleSearch?
        let edge = DependencyEdge(to: downstream, node: downstream.node, judge: judge)
        var level = QueueLevel.veryLow
        let inserted = lock.withLock { _ -> Insertion in
            if !isImplied, mayClose(edge, to: upstream) {
                search = CycleSearch(from: downstream, to: upstream)
                if search?.run() == true { return .refused }
            }
            return insert(edge, from: downstream, to: upstream, isPlain: judge == nil, input: input, level: &level)
        }
        withExtendedLifetime(search) {}
        switch inserted {
        case .waiting:
            downstream.signalDependencyAdded()
            if ManagedOperation.mayRaise(level) { upstream.raise(to: level) }
        case .needless: break
        case .upstreamEnded:
            edge.upstreamDidEnd(upstream)
            // Who looked in between found it waiting, and would not be told that it does no more.
            downstream.signalDependencyAdded()
        case .tooLate: throw .alreadyStarted(downstream.displayName, dependency: upstream.displayName)
        case .refused: throw .cycle(search?.path ?? [])
        }
        return edge
    }

    /// Whether both have other links: without, no cycle can run through them.
    private static func mayClose(_ edge: DependencyEdge, to upstream: ManagedOperation) -> Bool {
        edge.downstreamNode.downstreamCount > 0 && (upstream.nodeIfAny?.upstreamCount ?? 0) > 0
    }

    private enum Insertion {
        case waiting
        case upstreamEnded
        case needless
        case tooLate
        case refused
    }

    private static func insert(
        _ edge: DependencyEdge, from downstream: ManagedOperation, to upstream: ManagedOperation, isPlain: Bool,
        input: NewDependencyInput?, level: inout QueueLevel
    ) -> Insertion {
        let insertion = downstream.core.withLock { core in
            level = core.levelOfUpstream
            return core.insertUpstream(upstream, edge: edge, watcher: nil, isPlain: isPlain, input: input)
        }
        switch insertion {
        case .needless: return .needless
        case .tooLate: return .tooLate
        case .added: break
        }
        return upstream.core.withLock { core in
            guard !core.machine.isFinished else { return .upstreamEnded }
            core.needNode().addDownstream(edge)
            return .waiting
        }
    }
}

extension ManagedOperation.Core {
    enum UpstreamInsertion {
        case added
        /// There is such an edge, or the operation has an outcome and will never run its body.
        case needless
        case tooLate
    }

    mutating func insertUpstream(
        _ upstream: Operation, edge: DependencyEdge, watcher: ForeignWatcher?, isPlain: Bool,
        input: NewDependencyInput? = nil
    ) -> UpstreamInsertion {
        guard machine.acceptsDependencies else {
            return machine.ending == nil || machine.isStarted ? .tooLate : .needless
        }
        let node = needNode()
        guard node.add(edge, to: upstream, watcher: watcher, mustBeFirst: isPlain) else { return .needless }
        if let input { add(input, lastEdge: edge) }
        return .added
    }
}
