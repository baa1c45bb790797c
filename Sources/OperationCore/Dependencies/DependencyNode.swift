// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import Synchronization

/// The place of one operation in the graph: its links, and how many of those it waits for have not ended.
///
/// Made with an operation's first link. It outlives the operation where others still hold links to it, so that they need
/// not know whether the operation is there.
final class DependencyNode: Sendable {
    private let links = Locked(DependencyLinks())
    private let unended = Atomic<Int32>(0)
    private let hasEnded = Atomic(false)
    // Sendable: the mark and the place are only touched under the lock of the component's root, while its order is read
    // or changed.
    nonisolated(unsafe) var mark = DependencyOrder.Side.neither
    /// Whether the node has a rank.
    ///
    /// Without one it has no edges to other operations of this package.
    nonisolated(unsafe) private(set) var isPlaced = false
    /// The component in which the node was made; it may have been joined to others.
    let component: DependencyComponent
    // The rank in that component, stored in two halves. A single 128-bit value would make each node larger.
    nonisolated(unsafe) private var upperHalf: Int64 = 0
    nonisolated(unsafe) private var lowerHalf: UInt64 = 0

    /// Creates a node without edges in the component of a node to which it will be linked, or in a component of its
    /// own.
    init(in component: DependencyComponent? = nil) {
        self.component = component ?? DependencyComponent()
    }

    /// Whether all those waited for have ended.
    var isClear: Bool { unended.load(ordering: .acquiring) == 0 }

    /// How many operations it was ever made to wait for.
    var additions: Int { links.withLock { Int($0.additions) } }
    var upstreamOperations: [Operation] { links.withLock { $0.upstreamOperations } }
    var liveUpstream: [ManagedOperation] { links.withLock { $0.liveUpstream } }
    var unendedUpstream: [Operation] { links.withLock { $0.unendedUpstream } }
    var liveDownstream: [DependencyNode] { links.withLock { $0.liveDownstream } }

    /// The operations that wait for it, as far as they can be found: those in a queue, and those that were started.
    var listeningDownstream: [ManagedOperation] {
        liveDownstream.compactMap { node in node.links.withLock { $0.listener.operation } }
    }

    var hasLiveDownstream: Bool { links.withLock { !$0.liveDownstream.isEmpty } }

    /// Adds an edge; false, and nothing happened, if it `mustBeFirst` and there is one to that operation.
    func add(
        _ edge: DependencyEdge, to operation: Operation, _ source: DependencyLinks.Source, mustBeFirst: Bool
    ) -> Bool {
        links.withLock { links in
            if mustBeFirst, links.dependsOn(operation) { return false }
            unended.wrappingAdd(1, ordering: .acquiringAndReleasing)
            links.add(edge, to: operation, source)
            return true
        }
    }

    func addDownstream(_ edge: DependencyEdge) { links.withLock { $0.addDownstream(edge) } }

    /// One of those waited for ended: tells the operation if it was the last and somebody listens.
    ///
    /// Called outside every lock.
    func noteEnd() {
        guard unended.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue == 0 else { return }
        links.withLock { $0.listener.operation }?.dependenciesDidEnd()
    }

    /// Who is to be told of the last end from now on; returns whether that end came before.
    func listen(_ listener: DependencyListener) -> Bool {
        let old = links.withLock { exchange(&$0.listener, with: listener) }
        withExtendedLifetime(old) {}
        return isClear
    }

    /// Removes edges; returns the links, to be let go of outside every lock, and whether none is left to wait for.
    func remove(
        _ remove: (inout DependencyLinks) -> [DependencyLinks.Upstream]
    ) -> (removed: [DependencyLinks.Upstream], isClear: Bool) {
        let removed = links.withLock { remove(&$0) }
        let cut = removed.count { $0.edge.cut() }
        guard cut > 0 else { return (removed, false) }
        let left = unended.wrappingSubtract(Int32(truncatingIfNeeded: cut), ordering: .acquiringAndReleasing).newValue
        return (removed, left == 0)
    }

    /// Some of those that waited for it do so no more.
    func forgetCutEdges(_ count: Int) {
        let forgotten = links.withLock { $0.noteCutDownstream(count) }
        withExtendedLifetime(forgotten) {}
    }

    /// Releases the operations that wait for this one, which has ended.
    ///
    /// A rule is user code and may wait for an operation that depends on the same one. So edges without a rule come
    /// first.
    func releaseDownstream(of operation: ManagedOperation) {
        var ruled = FewOrMany<DependencyEdge>()
        links.withLock { $0.takeDownstream() }.forEach { edge in
            if edge.hasJudge { ruled.append(edge) } else { edge.upstreamDidEnd(operation) }
        }
        ruled.forEach { $0.upstreamDidEnd(operation) }
    }

    /// Cuts all links of an operation that ended or is being freed.
    ///
    /// The upstream operations may be freed by this, and theirs by that: in a loop, not in a recursion.
    func tearDown() {
        var upstream = FewOrMany<DependencyLinks.Upstream>()
        let (listener, isSettled) = links.withLock { $0.takeUpstream(&upstream) }
        withExtendedLifetime(listener) {}
        if upstream.isEmpty { return }
        // An edge that is counted off has ended or was cut.
        if !isClear { upstream.forEach(cut) }
        // An operation is settled inside the worklist and not in a deinit: what is freed here and leads further leaves a
        // note there.
        if isSettled {
            // A `deinit` may take long, and what got ready shall not wait for it.
            let isAnyFreed = upstream.containsInPlace { isKnownUniquelyReferenced(&$0.operation) }
            if isAnyFreed { WorkerSeat.tellReadied() }
            upstream = FewOrMany()
        } else if ThreadWorklist.begin() {
            upstream = FewOrMany()
            ThreadWorklist.finish()
        } else {
            let rest = exchange(&upstream, with: FewOrMany())
            ThreadWorklist.later { withExtendedLifetime(rest) {} }
        }
    }

    private func cut(_ link: DependencyLinks.Upstream) {
        guard link.edge.cut() else { return }
        withExtendedLifetime(link.edge.takeJudge()) {}
        (link.operation as? ManagedOperation)?.forgetCutEdges(1)
    }
}

// The place of the node in the order of the graph: see `DependencyOrder`.
extension DependencyNode {
    var rank: DependencyRank {
        (DependencyRank(upperHalf) << 64 | DependencyRank(lowerHalf)) &+ component.shiftToRoot
    }

    /// Gives the node a rank in the root of its component.
    func place(at rank: DependencyRank) {
        if !isPlaced { component.root.noteNode() }
        isPlaced = true
        let own = rank &- component.shiftToRoot
        upperHalf = Int64(truncatingIfNeeded: own >> 64)
        lowerHalf = UInt64(truncatingIfNeeded: own)
    }

    /// Notes that the operation has ended, so that its edges no longer count.
    func noteEndOfOperation() { hasEnded.store(true, ordering: .releasing) }

    /// The nodes that are linked to this one on one side, and whose operations have not ended.
    ///
    /// It is safe to release a node under a lock, because its operation removes all links from the node before it
    /// releases the node.
    func neighbours(_ side: DependencyOrder.Side) -> [DependencyNode] {
        links.withLock { side == .below ? $0.liveDownstream : $0.liveUpstreamNodes }
            .filter { !$0.hasEnded.load(ordering: .acquiring) }
    }

    /// The number of edges on one side, including ended and cut ones.
    func linkCount(_ side: DependencyOrder.Side) -> Int {
        links.withLock { side == .below ? $0.downstreamCount : $0.upstreamCount }
    }

    /// The operation of an upstream node; nil if this node does not wait for it, or no longer does.
    func operation(of upstream: DependencyNode) -> ManagedOperation? {
        links.withLock { $0.liveOperation(of: upstream) }
    }
}

/// Who is told that an operation's dependencies ended.
enum DependencyListener {
    /// Nobody: who wants to know will ask.
    case nobody
    /// The operation, which its queue keeps until it ended.
    case held(ManagedOperation)
    /// The operation, if it is still there.
    case loose(WeakOperation)

    var operation: ManagedOperation? {
        switch self {
        case .nobody: nil
        case .held(let operation): operation
        case .loose(let reference): reference.operation
        }
    }
}

/// A weak reference, on its own so that operations that need none pay for none.
final class WeakOperation: Sendable {
    // Sendable: written once, in init; loading a weak reference is atomic.
    private nonisolated(unsafe) weak var reference: ManagedOperation?

    var operation: ManagedOperation? { reference }

    init(_ operation: ManagedOperation) { reference = operation }
}
