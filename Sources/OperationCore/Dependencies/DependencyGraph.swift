// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Adds edges between operations of this package, and refuses those that would close a cycle.
///
/// Only adding an edge needs to look at more than two operations. It is done under the lock of the part of the graph to
/// which the two belong (``DependencyComponent``). That part keeps its operations in an order (``DependencyOrder``). An
/// edge that agrees with the order closes no cycle, so no search is needed.
///
/// An edge to or from a ``MappedOperation`` is an edge of its original. A cycle through a plain `Foundation.Operation`
/// is not detected.
enum DependencyGraph {
    /// Makes `downstream`, which is not a mapped operation, wait for the named operation or its original.
    static func connect(
        _ downstream: ManagedOperation, to named: ManagedOperation, judge: DependencyEdge.Judge?,
        input: NewDependencyInput? = nil
    ) throws(DependencyError) -> DependencyEdge {
        let upstream = named.life
        guard downstream !== upstream else { throw .cycle([downstream.displayName, downstream.displayName]) }
        let (node, upstreamNode) = nodes(of: downstream, upstream)
        let edge = DependencyEdge(to: downstream, node: node, judge: judge)
        var level = QueueLevel.veryLow
        switch insert(edge, from: downstream, to: named, upstreamNode, judge == nil, input, &level) {
        case .waiting:
            downstream.signalDependencyAdded()
            if ManagedOperation.mayRaise(level) { upstream.raise(to: level) }
        case .needless: break
        case .upstreamEnded:
            edge.upstreamDidEnd(upstream)
            // Who looked in between found it waiting, and would not be told that it does no more.
            downstream.signalDependencyAdded()
        case .tooLate: throw .alreadyStarted(downstream.displayName, dependency: upstream.displayName)
        case .refused(let cycle): throw .cycle([downstream.displayName] + cycle.map(\.displayName))
        }
        return edge
    }

    /// Returns the nodes of both operations.
    ///
    /// A new node is made in the component of the other node. The second node is nil if its operation has ended.
    private static func nodes(
        of downstream: ManagedOperation, _ upstream: ManagedOperation
    ) -> (DependencyNode, DependencyNode?) {
        if let node = upstream.nodeIfAny { return (downstream.node(in: node.component), node) }
        let node = downstream.node
        return (node, upstream.core.withLock { $0.machine.isFinished ? nil : $0.needNode(in: node.component) })
    }

    private enum Insertion {
        case waiting
        case upstreamEnded
        case needless
        case tooLate
        /// The operations along the cycle, from the upstream one to the downstream one.
        case refused([ManagedOperation])
    }

    /// Adds an edge if the order of the graph allows it.
    private static func insert(
        _ edge: DependencyEdge, from downstream: ManagedOperation, to named: ManagedOperation,
        _ upstreamNode: DependencyNode?, _ isPlain: Bool, _ input: NewDependencyInput?, _ level: inout QueueLevel
    ) -> Insertion {
        guard let upstreamNode else {
            return insert(edge, from: downstream, to: named, .ended, isPlain, input, &level)
        }
        while true {
            var refusal: DependencyOrder?
            let insertion = DependencyComponent.withRoots(of: edge.downstreamNode.component, upstreamNode.component) {
                if !DependencyOrder.agrees(edge.downstreamNode, after: upstreamNode) {
                    var order = DependencyOrder(edge.downstreamNode, after: upstreamNode)
                    guard order.admit() else {
                        refusal = order
                        return nil as Insertion?
                    }
                }
                return insert(edge, from: downstream, to: named, .node(upstreamNode), isPlain, input, &level)
            }
            if let insertion { return insertion }
            // An edge of the cycle may have been removed meanwhile. Then there is no cycle, and the loop tries again.
            if let cycle = refusal?.cycle(from: named.life) { return .refused(cycle) }
        }
    }

    private static func insert(
        _ edge: DependencyEdge, from downstream: ManagedOperation, to named: ManagedOperation,
        _ source: DependencyLinks.Source, _ isPlain: Bool, _ input: NewDependencyInput?, _ level: inout QueueLevel
    ) -> Insertion {
        let insertion = downstream.core.withLock { core in
            level = core.levelOfUpstream
            return core.insertUpstream(named, edge: edge, source, isPlain: isPlain, input: input)
        }
        switch insertion {
        case .needless: return .needless
        case .tooLate: return .tooLate
        case .added: break
        }
        return named.core.withLock { core in
            guard !core.machine.isFinished else { return .upstreamEnded }
            core.needNode().addDownstream(edge)
            return .waiting
        }
    }
}

extension ManagedOperation {
    /// Whether it comes after its dependencies and before its dependents in the order of the graph; for tests.
    package final var isInOrder: Bool {
        guard let node = nodeIfAny else { return true }
        return DependencyComponent.withRoots(of: node.component, node.component) {
            node.neighbours(.below).allSatisfy { node.rank < $0.rank }
                && node.neighbours(.above).allSatisfy { $0.rank < node.rank }
        }
    }

    /// The number of nodes and links that searches looked at in its part of the graph; for tests.
    package final var searchCost: Int {
        guard let node = nodeIfAny else { return 0 }
        return DependencyComponent.withRoots(of: node.component, node.component) { node.component.root.visits }
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
        _ upstream: Operation, edge: DependencyEdge, _ source: DependencyLinks.Source, isPlain: Bool,
        input: NewDependencyInput? = nil
    ) -> UpstreamInsertion {
        guard machine.acceptsDependencies else {
            return machine.ending == nil || machine.isStarted ? .tooLate : .needless
        }
        let node = needNode()
        guard node.add(edge, to: upstream, source, mustBeFirst: isPlain) else { return .needless }
        if let input { add(input, lastEdge: edge) }
        return .added
    }
}
