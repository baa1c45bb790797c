// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import Synchronization

/// The node of an operation in the graph, with its links and the number of dependencies that have not ended.
///
/// The node is created with the first link of the operation. The node outlives the operation if other nodes still have
/// links to the node, so they need not know whether the operation exists. The graph knows operations only as operations
/// of Foundation. The operations from this package implement what a node does for its operation.
class DependencyNode: @unchecked Sendable {
    // Sendable: a subclass adds only state that is.

    final let links = Locked(DependencyLinks())
    private let unended = Atomic<Int32>(0)
    private let hasEnded = Atomic(false)
    // Sendable: the mark and the place are only touched under the lock of the component's root, while its order is read
    // or changed.
    nonisolated(unsafe) final var mark = DependencyOrder.Side.neither
    /// Whether the node has a rank.
    ///
    /// A node without a rank has no edges to other operations from this package.
    nonisolated(unsafe) private(set) final var isPlaced = false
    /// The component in which the node was created, which may have been joined to others.
    final let component: DependencyComponent
    // The rank in that component, stored in two halves. A single 128-bit value would make each node larger.
    nonisolated(unsafe) private var upperHalf: Int64 = 0
    nonisolated(unsafe) private var lowerHalf: UInt64 = 0

    /// Creates a node without edges in the component of a node to which it will be linked, or in a new component.
    init(in component: DependencyComponent? = nil) {
        self.component = if let component { component } else { DependencyComponent() }
    }

    /// Notifies the operation that its last dependency has ended.
    func dependenciesDidEnd() {}

    /// Forgets the operation to notify, and returns what must be released without holding the lock of the links, which
    /// is held.
    func takeListener() -> AnyObject? { nil }

    /// Applies a rule for the end of a dependency to the operation of this node.
    func apply(_ judge: DependencyEdge.Judge, at end: Operation, to operation: Operation) {}

    /// Whether all dependencies have ended.
    final var isClear: Bool { unended.load(ordering: .acquiring) == 0 }

    /// The number of dependencies that the operation ever had.
    final var additions: Int { links.withLock { Int($0.additions) } }
    final var upstreamOperations: [Operation] { links.withLock { $0.upstreamOperations } }
    final var unendedUpstream: [Operation] { links.withLock { $0.unendedUpstream } }
    final var liveDownstream: [DependencyNode] { links.withLock { $0.liveDownstream } }

    final var hasLiveDownstream: Bool { links.withLock { !$0.liveDownstream.isEmpty } }

    /// Adds an edge to an operation, and returns whether it was added.
    ///
    /// If the edge has no rule and there is an edge to the same operation, no edge is added.
    final func add(_ edge: DependencyEdge, to operation: Operation, _ source: DependencyLinks.Source) -> Bool {
        links.withLock { links in
            let link = DependencyLinks.Upstream(operation: operation, edge: edge, source: source)
            if !edge.hasJudge, links.position(of: link.original) != nil { return false }
            unended.wrappingAdd(1, ordering: .acquiringAndReleasing)
            links.add(link)
            return true
        }
    }

    final func addDownstream(_ edge: DependencyEdge) { links.withLock { $0.downstream.append(edge) } }

    /// Notes that a dependency has ended, and notifies the listener if it was the last one.
    ///
    /// Called without holding a lock.
    final func recordEnd() {
        guard unended.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue == 0 else { return }
        dependenciesDidEnd()
    }

    /// Removes edges, and returns the removed links and whether this ended the wait of the operation.
    ///
    /// The links must be released without holding a lock.
    final func remove(
        _ remove: (inout DependencyLinks) -> [DependencyLinks.Upstream]
    ) -> (removed: [DependencyLinks.Upstream], isClear: Bool) {
        let removed = links.withLock { remove(&$0) }
        let cut = removed.count { $0.edge.cut() }
        guard cut > 0 else { return (removed, false) }
        let left = unended.wrappingSubtract(Int32(truncatingIfNeeded: cut), ordering: .acquiringAndReleasing).newValue
        return (removed, left == 0)
    }

    /// Notes that some dependents no longer wait for this operation.
    final func forgetCutEdges(_ count: Int) {
        links.release { $0.recordCutDownstream(count) }
    }

    /// Notifies the operations that depend on this operation that it has ended.
    ///
    /// A rule is user code and may wait for an operation that depends on the same one. So edges without a rule come
    /// first.
    final func releaseDownstream(of operation: Operation) {
        let edges = links.withLock { $0.takeDownstream() }
        edges.forEach { if !$0.hasJudge { $0.upstreamDidEnd(operation) } }
        edges.forEach { if $0.hasJudge { $0.upstreamDidEnd(operation) } }
    }

    /// Cuts all links of an operation that ended or is being freed.
    ///
    /// The upstream operations may be freed by this, and then theirs. So this uses a loop and not a recursion.
    final func tearDown() {
        var upstream = FewOrMany<DependencyLinks.Upstream>()
        let (listener, isSettled) = links.withLock { (takeListener(), $0.takeUpstream(&upstream)) }
        extendLifetime(listener)
        if upstream.isEmpty { return }
        // If all edges are counted off, each of them has ended or was cut.
        if !isClear { upstream.forEach(cut) }
        // An operation is settled inside the worklist and not in a deinit. Operations that are freed here leave their
        // further work in the worklist.
        if isSettled {
            // A `deinit` may take long, so the operations that became ready are reported first.
            let isAnyFreed = upstream.containsInPlace { isKnownUniquelyReferenced(&$0.operation) }
            if isAnyFreed { ThreadNotes.current.worker?.reportReadied() }
            upstream = FewOrMany()
        } else if ThreadWorklist.begin() {
            upstream = FewOrMany()
            ThreadWorklist.finish()
        } else {
            let rest = exchange(&upstream, with: FewOrMany())
            ThreadWorklist.later { extendLifetime(rest) }
        }
    }

    private func cut(_ link: DependencyLinks.Upstream) {
        guard link.edge.cut() else { return }
        extendLifetime(link.edge.takeJudge())
        link.source.node?.forgetCutEdges(1)
    }
}

// The place of the node in the order of the graph: see `DependencyOrder`.
extension DependencyNode {
    final var rank: DependencyRank {
        (DependencyRank(upperHalf) << 64 | DependencyRank(lowerHalf)) &+ component.shiftToRoot
    }

    /// Gives the node a rank in the root of its component.
    final func place(at rank: DependencyRank) {
        if !isPlaced { component.countNode() }
        isPlaced = true
        let own = rank &- component.shiftToRoot
        upperHalf = Int64(truncatingIfNeeded: own >> 64)
        lowerHalf = UInt64(truncatingIfNeeded: own)
    }

    /// Notes that the operation has ended, so that its edges no longer count.
    final func recordEndOfOperation() { hasEnded.store(true, ordering: .releasing) }

    /// The nodes that are linked to this one on one side, and whose operations have not ended.
    ///
    /// A node may be released under a lock, because its operation removes all links from the node before it releases
    /// the node.
    final func neighbours(_ side: DependencyOrder.Side) -> [DependencyNode] {
        links.withLock { side == .below ? $0.liveDownstream : $0.liveUpstreamNodes }
            .filter { !$0.hasEnded.load(ordering: .acquiring) }
    }

    /// The number of edges on one side, including ended and cut ones.
    final func linkCount(_ side: DependencyOrder.Side) -> Int {
        links.withLock { side == .below ? $0.downstream.count : $0.upstream.count }
    }

    /// Returns the operation of an upstream node, or `nil` if this node does not wait for it.
    final func operation(of upstream: DependencyNode) -> Operation? {
        links.withLock { $0.liveOperation(of: upstream) }
    }
}

/// The dependency of one operation on another, which is held by both and keeps neither alive.
///
/// The strong link from the waiting operation to its dependency is beside the edge in ``DependencyLinks``. The edge
/// leads to the node of the waiting operation, which can be notified without that operation. Only an edge with a rule
/// has a weak reference to the operation. Such a reference is expensive to create and slows down each later use of the
/// operation.
final class DependencyEdge: Sendable {
    private enum Phase: UInt8, AtomicRepresentable {
        /// The upstream operation has not ended.
        case live
        /// The upstream operation ended, and the downstream node was notified.
        case ended
        /// The dependency was removed.
        case cut
    }

    /// The effect of the end of the upstream operation on the downstream one.
    enum Verdict: Sendable {
        case proceed
        case cancel(CancellationCause)
        case fail(@Sendable (Operation) -> Void)
    }

    typealias Judge = @Sendable (_ upstream: Operation) -> Verdict

    private let phase = Atomic<Phase>(.live)
    /// The node of the operation that waits.
    let downstreamNode: DependencyNode
    // Sendable: written once, in init; loading a weak reference is atomic.
    private nonisolated(unsafe) weak var judged: Operation?
    /// The rule, which holds user values and is released when the edge has done its part.
    private let judge: Locked<Judge?>
    let hasJudge: Bool
    // Sendable: only touched under the lock of the downstream operation.
    nonisolated(unsafe) var inputNumber: UInt32?

    /// Creates an edge.
    ///
    /// An edge with a `judge` may end the downstream operation. An edge without one lets it run in any case.
    init(to downstream: Operation, node: DependencyNode, judge: Judge?) {
        downstreamNode = node
        hasJudge = judge != nil
        if judge != nil { judged = downstream }
        self.judge = Locked(judge)
    }

    var isLive: Bool { phase.load(ordering: .acquiring) == .live }
    var isCut: Bool { phase.load(ordering: .acquiring) == .cut }

    /// Notifies the downstream operation that the upstream one ended.
    ///
    /// Called without holding a lock.
    func upstreamDidEnd(_ upstream: Operation) {
        // The downstream operation may be cutting this edge at the same moment. The thread that moves it away from
        // `live` also takes it off the count.
        guard claim(.ended) else { return }
        if hasJudge, let judge = takeJudge(), let downstream = judged {
            downstreamNode.apply(judge, at: upstream, to: downstream)
        }
        downstreamNode.recordEnd()
    }

    /// Removes the dependency, and returns whether the upstream operation had not ended.
    func cut() -> Bool { claim(.cut) }

    /// Takes out the rule, to be released where no lock is held.
    func takeJudge() -> Judge? { hasJudge ? judge.withLock { exchange(&$0, with: nil) } : nil }

    private func claim(_ new: Phase) -> Bool {
        phase.compareExchange(expected: .live, desired: new, ordering: .acquiringAndReleasing).exchanged
    }
}

/// The links of one operation: strong links to its dependencies, and edges to the nodes of its dependents.
///
/// Most operations of a graph have one or two of each, so the first of each needs no array.
struct DependencyLinks {
    /// A link to a dependency.
    struct Upstream {
        /// The operation that the user named.
        ///
        /// If it is mapped, the edge leads to its original.
        var operation: Operation
        let edge: DependencyEdge
        let source: Source

        /// The operation itself, or the original of a mapped operation.
        var original: Operation { if case .mapped(let original, _) = source { original } else { operation } }
    }

    /// The source that reports the end of a dependency.
    enum Source {
        /// The dependency is a plain `Foundation.Operation`, which a watcher follows.
        case watcher(PlainOperationWatcher)
        case node(DependencyNode)
        /// The dependency had already ended.
        case ended
        /// The operation that the user named is mapped from this original, which has the other source.
        indirect case mapped(Operation, Source)

        var node: DependencyNode? {
            switch self {
            case .node(let node): node
            case .mapped(_, let source): source.node
            case .watcher, .ended: nil
            }
        }
    }

    fileprivate var upstream = FewOrMany<Upstream>()
    fileprivate var downstream = FewOrMany<DependencyEdge>()
    /// The index, which only an operation with many links has.
    private var index: DependencyIndex?
    private var cutCount: Int32 = 0
    /// The number of links that were ever added.
    private(set) var additions: Int32 = 0
    /// Whether the operation ended and its dependents are being notified.
    private(set) var isSettled = false

    /// The dependencies, each once.
    var upstreamOperations: [Operation] {
        var seen: Set<ObjectIdentifier> = []
        return upstream.map(\.operation).filter { seen.insert(ObjectIdentifier($0)).inserted }
    }

    /// The originals of the dependencies that have not ended.
    var liveUpstream: [Operation] { upstream.compactMap { $0.edge.isLive ? $0.original : nil } }

    /// The nodes of the live upstream operations that had not ended when the link was made.
    var liveUpstreamNodes: [DependencyNode] {
        upstream.compactMap { $0.edge.isLive ? $0.source.node : nil }
    }

    /// Returns the live upstream operation to which a node belongs.
    func liveOperation(of node: DependencyNode) -> Operation? {
        upstream.firstIndex { $0.source.node === node && $0.edge.isLive }.map { upstream[$0].original }
    }

    /// The dependencies of any kind that have not ended, each once.
    var unendedUpstream: [Operation] {
        var seen: Set<ObjectIdentifier> = []
        return upstream.compactMap { $0.edge.isLive ? $0.operation : nil }
            .filter { seen.insert(ObjectIdentifier($0)).inserted }
    }

    /// The nodes of the operations that wait.
    var liveDownstream: [DependencyNode] {
        downstream.compactMap { $0.isLive ? $0.downstreamNode : nil }
    }

    mutating func add(_ link: consuming Upstream) {
        index?.add(link.original, at: upstream.count)
        upstream.append(link)
        additions &+= 1
        if index == nil, upstream.count >= Self.indexThreshold {
            let made = DependencyIndex()
            for (position, link) in upstream.enumerated() { made.add(link.original, at: position) }
            index = made
        }
    }

    // The methods below return removed links, to be released without holding the lock. Their edges are still to be cut.

    // The operations that they take are no mapped ones, but their originals.

    /// Removes the edges to `operation`.
    mutating func remove(_ operation: Operation) -> [Upstream] {
        var removed: [Upstream] = []
        while let position = position(of: operation) { removed.append(removeLink(at: position)) }
        return removed
    }

    /// Removes one edge to `operation`.
    mutating func remove(_ edge: DependencyEdge, to operation: Operation) -> [Upstream] {
        let position =
            index.map { $0.positions(of: operation).first { upstream[$0].edge === edge } }
            ?? upstream.firstIndex { $0.edge === edge }
        return position.map { [removeLink(at: $0)] } ?? []
    }

    private mutating func removeLink(at position: Int) -> Upstream {
        let link = upstream[position]
        guard let index else {
            upstream.remove(at: position)
            return link
        }
        let last = upstream.count - 1
        index.remove(link.original, at: position)
        if position < last {
            upstream.swapAt(position, last)
            index.move(upstream[position].original, from: last, to: position)
        }
        upstream.remove(at: last)
        return link
    }

    /// Removes the cut edges if they are more than half of all, so that the memory stays bounded.
    mutating func recordCutDownstream(_ count: Int) -> [DependencyEdge] {
        cutCount += Int32(clamping: count)
        guard Int(cutCount) * 2 > downstream.count else { return [] }
        cutCount = 0
        return downstream.removeAll(where: \.isCut)
    }

    /// Moves the upstream links to `place`, which is empty.
    ///
    /// The result is whether the operation had been settled.
    mutating func takeUpstream(_ place: inout FewOrMany<Upstream>) -> Bool {
        index = nil
        swap(&upstream, &place)
        return isSettled
    }

    mutating func takeDownstream() -> FewOrMany<DependencyEdge> {
        isSettled = true
        return exchange(&downstream, with: FewOrMany())
    }

    private static let indexThreshold = 9

    /// Returns the position of a link to an operation that is not mapped.
    fileprivate func position(of original: Operation) -> Int? {
        if upstream.isEmpty { return nil }
        if let index { return index.position(of: original) }
        return upstream.firstIndex { $0.original === original }
    }
}

/// An index that finds the links to one operation among many.
///
/// Not Sendable on purpose: only touched under the lock of the links.
private final class DependencyIndex {
    /// One position for each operation.
    private var positions: [ObjectIdentifier: Int] = [:]
    /// All positions of the operations that have several links, each of which feeds another input.
    private var repeats: [ObjectIdentifier: Set<Int>] = [:]

    func position(of operation: Operation) -> Int? { positions[ObjectIdentifier(operation)] }

    func positions(of operation: Operation) -> Set<Int> {
        let key = ObjectIdentifier(operation)
        return repeats[key] ?? positions[key].map { [$0] } ?? []
    }

    func add(_ operation: Operation, at position: Int) {
        let key = ObjectIdentifier(operation)
        if let first = positions[key] {
            repeats[key, default: [first]].insert(position)
        } else {
            positions[key] = position
        }
    }

    func remove(_ operation: Operation, at position: Int) {
        let key = ObjectIdentifier(operation)
        repeats[key]?.remove(position)
        guard positions[key] == position else { return }
        positions[key] = repeats[key]?.first
        if positions[key] == nil { repeats[key] = nil }
    }

    func move(_ operation: Operation, from old: Int, to new: Int) {
        let key = ObjectIdentifier(operation)
        if repeats[key]?.remove(old) != nil { repeats[key]?.insert(new) }
        if positions[key] == old { positions[key] = new }
    }
}
