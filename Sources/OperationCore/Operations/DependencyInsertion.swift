// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// Adds edges between operations from this package, and refuses those that would close a cycle.
///
/// Only adding an edge needs to look at more than two operations. An edge is added under the lock of the part of the
/// graph to which the two belong (``DependencyComponent``). That part keeps its operations in an order
/// (``DependencyOrder``). An edge that agrees with the order closes no cycle, so no search is needed.
///
/// An edge to or from a mapped operation is an edge of its original. A cycle through a plain `Foundation.Operation`
/// is not detected.
enum DependencyInsertion {
    /// Makes `downstream`, which is not a mapped operation, wait for the named operation or its original.
    static func connect(
        _ downstream: ManagedOperation, to named: ManagedOperation, judge: DependencyEdge.Judge?,
        input: NewDependencyInput? = nil
    ) throws(OperationSetupError) -> DependencyEdge {
        let upstream = named.life
        guard downstream !== upstream else { throw .cycle([downstream.displayName, downstream.displayName]) }
        // A new node is created in the component of the other node.
        guard let node = downstream.node(in: upstream.nodeIfAny?.component) else {
            throw .alreadyStarted(downstream.displayName, dependency: upstream.displayName)
        }
        let upstreamNode = upstream.node(in: node.component)
        let edge = DependencyEdge(to: downstream, node: node, judge: judge)
        switch insert(edge, from: downstream, to: named, upstreamNode, input) {
        case .added(let wasUsed, let level):
            if wasUsed { downstream.signalDependencyAdded() }
            if ManagedOperation.mayRaise(level) { upstream.raise(to: level) }
        case .needless: break
        case .upstreamEnded(let wasUsed):
            edge.upstreamDidEnd(upstream)
            // A thread that looked in the meantime found the operation waiting, and must be notified that it no longer
            // waits.
            if wasUsed { downstream.signalDependencyAdded() }
        case .tooLate: throw .alreadyStarted(downstream.displayName, dependency: upstream.displayName)
        case .refused(let cycle): throw .cycle([downstream.displayName] + cycle.map(\.displayName))
        }
        return edge
    }

    private typealias Insertion = ManagedOperation.Core.UpstreamInsertion

    /// Adds an edge if the order of the graph allows it.
    ///
    /// The upstream node is `nil` if its operation has ended.
    private static func insert(
        _ edge: DependencyEdge, from downstream: ManagedOperation, to named: ManagedOperation,
        _ upstreamNode: OperationNode?, _ input: NewDependencyInput?
    ) -> Insertion {
        guard let upstreamNode else { return insertHalves(edge, from: downstream, to: named, nil, input) }
        let downstreamNode = edge.downstreamNode
        while true {
            var refusal: DependencyOrder?
            let insertion = DependencyComponent.withRoots(of: downstreamNode.component, upstreamNode.component) {
                if !DependencyOrder.agrees(downstreamNode, after: upstreamNode) {
                    var order = DependencyOrder(downstreamNode, after: upstreamNode)
                    guard order.admit() else {
                        refusal = order
                        return nil as Insertion?
                    }
                }
                return insertHalves(edge, from: downstream, to: named, upstreamNode, input)
            }
            if let insertion { return insertion }
            // An edge of the cycle may have been removed in the meantime. Then there is no cycle, and the loop tries
            // again.
            if let cycle = refusal?.cycle(from: named.life) { return .refused(cycle) }
        }
    }

    /// Adds the edge to both operations.
    private static func insertHalves(
        _ edge: DependencyEdge, from downstream: ManagedOperation, to named: ManagedOperation,
        _ upstreamNode: OperationNode?, _ input: NewDependencyInput?
    ) -> Insertion {
        var source: DependencyLinks.Source = if let upstreamNode { .node(upstreamNode) } else { .ended }
        if let original = named.original { source = .mapped(original, source) }
        let insertion = downstream.core.withLock { $0.insertUpstream(edge, to: named, source, input: input) }
        guard case .added(let wasUsed, _) = insertion else { return insertion }
        return named.core.withLock { core in
            guard let upstreamNode, !core.machine.isFinished else { return .upstreamEnded(wasUsed: wasUsed) }
            upstreamNode.addDownstream(edge)
            return insertion
        }
    }
}

extension ManagedOperation {
    /// Whether the operation comes after its dependencies and before its dependents in the order of the graph, for
    /// tests.
    package final var isInOrder: Bool {
        guard let node = nodeIfAny else { return true }
        return DependencyComponent.withRoots(of: node.component, node.component) {
            node.neighbours(.below).allSatisfy { node.rank < $0.rank }
                && node.neighbours(.above).allSatisfy { $0.rank < node.rank }
        }
    }

    /// The number of nodes and links that searches looked at in the operation's part of the graph, for tests.
    package final var searchCost: Int {
        guard let node = nodeIfAny else { return 0 }
        return DependencyComponent.withRoots(of: node.component, node.component) { node.component.root.visits }
    }
}

extension ManagedOperation.Core {
    enum UpstreamInsertion {
        /// The operation waits for the dependency, which inherits this urgency.
        ///
        /// Most operations get their dependencies before any other code uses them.
        case added(wasUsed: Bool, level: QueueLevel)
        /// The dependency has ended, so the operation does not wait for it.
        case upstreamEnded(wasUsed: Bool)
        /// The edge exists, or the operation has an outcome and will never run its body.
        case needless
        case tooLate
        /// The dependency would close a cycle of these operations, from the upstream one to the downstream one.
        case refused([Operation])
    }

    mutating func insertUpstream(
        _ edge: DependencyEdge, to operation: Operation, _ source: DependencyLinks.Source,
        input: NewDependencyInput? = nil
    ) -> UpstreamInsertion {
        guard machine.acceptsDependencies else {
            return machine.ending == nil || machine.isStarted ? .tooLate : .needless
        }
        guard edge.downstreamNode.add(edge, to: operation, source) else { return .needless }
        let wasUsed = if host == nil, extras == nil { wasAskedForReadiness } else { true }
        if let input { add(input, lastEdge: edge) }
        return .added(wasUsed: wasUsed, level: levelOfUpstream)
    }
}

extension ManagedOperation {
    /// Makes the operation wait for a plain `Foundation.Operation`.
    ///
    /// A cycle through plain operations is not detected.
    func connect(
        toPlain upstream: Operation, judge: DependencyEdge.Judge?
    ) throws(OperationSetupError) -> DependencyEdge {
        guard let node = node() else { throw .alreadyStarted(displayName, dependency: upstream.displayName) }
        let edge = DependencyEdge(to: self, node: node, judge: judge)
        let watcher = PlainOperationWatcher(upstream) { [weak edge] operation in edge?.upstreamDidEnd(operation) }
        switch core.withLock({ $0.insertUpstream(edge, to: upstream, .watcher(watcher)) }) {
        case .added(let wasUsed, _):
            if wasUsed { signalDependencyAdded() }
            watcher.begin()
        case .needless, .upstreamEnded, .refused: break
        case .tooLate: throw .alreadyStarted(displayName, dependency: upstream.displayName)
        }
        return edge
    }
}

/// The node of an operation from this package, which knows the operation to notify.
final class OperationNode: DependencyNode, @unchecked Sendable {
    // Sendable: the listener is only touched under the lock of the links.

    /// The operation to notify when its last dependency has ended.
    private enum Listener {
        case nothing
        /// The operation, which its queue keeps alive until it ends.
        case held(ManagedOperation)
        /// The operation, if it still exists.
        case weaklyHeld(WeakReference<ManagedOperation>)

        var operation: ManagedOperation? {
            switch self {
            case .nothing: nil
            case .held(let operation): operation
            case .weaklyHeld(let reference): reference.object
            }
        }
    }

    private var listener = Listener.nothing

    /// Sets the operation to notify of the end of the last dependency, and returns whether that end came before.
    ///
    /// - Parameter isHeld: Whether the node keeps the operation alive.
    func listen(_ operation: ManagedOperation, isHeld: Bool = false) -> Bool {
        let listener = isHeld ? Listener.held(operation) : .weaklyHeld(WeakReference(operation))
        let old = links.withLock { _ in exchange(&self.listener, with: listener) }
        extendLifetime(old)
        return isClear
    }

    /// The dependencies of this package that have not ended.
    var liveUpstream: [ManagedOperation] { links.withLock { $0.liveUpstream }.compactMap { $0 as? ManagedOperation } }

    /// The operations that wait for this one and are in a queue or were started.
    var listeningDownstream: [ManagedOperation] { liveDownstream.compactMap { ($0 as? OperationNode)?.listening } }

    private var listening: ManagedOperation? { links.withLock { _ in listener.operation } }

    override func dependenciesDidEnd() { listening?.dependenciesDidEnd() }

    override func takeListener() -> AnyObject? {
        switch exchange(&listener, with: .nothing) {
        case .nothing: nil
        case .held(let operation): operation
        case .weaklyHeld(let reference): reference
        }
    }

    override func apply(_ judge: DependencyEdge.Judge, at end: Operation, to operation: Operation) {
        guard let operation = operation as? ManagedOperation else { return }
        guard let upstream = end as? ManagedOperation else { return Self.apply(judge(end), to: operation) }
        // Dependents whose rules come later wait until this rule has returned.
        BodyWait.within(upstream) { Self.apply(judge(upstream), to: operation) }
    }

    private static func apply(_ verdict: DependencyEdge.Verdict, to operation: ManagedOperation) {
        switch verdict {
        case .proceed: break
        case .cancel(let cause): operation.cancelIfUndecided(because: cause)
        case .fail(let fail): fail(operation)
        }
    }
}
