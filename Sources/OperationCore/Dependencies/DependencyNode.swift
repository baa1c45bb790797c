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

/// One operation that waits for another: held by both, keeping neither alive.
///
/// The strong link from the waiting operation to the one it waits for stands beside the edge in its ``DependencyLinks``.
/// The edge itself leads to the node of the waiting operation, which can be told without that operation; a weak
/// reference to it, which costs much in making and makes each later use of the operation slower, only an edge with a
/// rule has.
final class DependencyEdge: Sendable {
    private enum Phase: UInt8, AtomicRepresentable {
        /// The upstream operation has not ended.
        case live
        /// The upstream operation ended, and the downstream one was told.
        case ended
        /// The dependency was taken back.
        case cut
    }

    /// What the end of the upstream operation means for the downstream one.
    enum Verdict: Sendable {
        case proceed
        case cancel(CancellationCause)
        case fail(@Sendable (ManagedOperation) -> Void)
    }

    typealias Judge = @Sendable (_ upstream: Operation) -> Verdict

    private let phase = Atomic<Phase>(.live)
    /// The node of the operation that waits.
    let downstreamNode: DependencyNode
    // Sendable: written once, in init; loading a weak reference is atomic.
    private nonisolated(unsafe) weak var judged: ManagedOperation?
    /// Let go of when the edge has done its part: it holds what the user's rule captured.
    private let judge: Locked<Judge?>
    let hasJudge: Bool
    // Sendable: only touched under the lock of the downstream operation.
    nonisolated(unsafe) var inputNumber: UInt32 = 0

    /// An edge with a `judge` may end the downstream operation; one without lets it run anyway.
    init(to downstream: ManagedOperation, node: DependencyNode, judge: Judge?) {
        downstreamNode = node
        hasJudge = judge != nil
        if judge != nil { judged = downstream }
        self.judge = Locked(judge)
    }

    var isLive: Bool { phase.load(ordering: .acquiring) == .live }
    var isCut: Bool { phase.load(ordering: .acquiring) == .cut }

    /// Tells the downstream operation that the upstream one ended.
    ///
    /// Called outside every lock.
    func upstreamDidEnd(_ upstream: Operation) {
        // The downstream operation may be cutting this edge at the same moment. Who moves it away from `live` is the
        // one who takes it off the count.
        guard claim(.ended) else { return }
        if hasJudge { apply(takeJudge(), to: upstream) }
        downstreamNode.noteEnd()
    }

    private func apply(_ judge: Judge?, to upstream: Operation) {
        guard let downstream = judged else { return }
        guard let upstream = upstream as? ManagedOperation else { return apply(judge?(upstream), to: downstream) }
        // Dependents whose rules come later wait until this rule has returned.
        BodyWait.within(upstream) { apply(judge?(upstream), to: downstream) }
    }

    private func apply(_ verdict: Verdict?, to downstream: ManagedOperation) {
        switch verdict ?? .proceed {
        case .proceed: break
        case .cancel(let cause): downstream.cancelIfUndecided(because: cause)
        case .fail(let fail): fail(downstream)
        }
    }

    /// Takes the dependency back; false if the upstream operation had ended.
    func cut() -> Bool { claim(.cut) }

    /// What the rule captured, to be let go of where no lock is held.
    func takeJudge() -> Judge? { hasJudge ? judge.withLock { exchange(&$0, with: nil) } : nil }

    private func claim(_ new: Phase) -> Bool {
        phase.compareExchange(expected: .live, desired: new, ordering: .acquiringAndReleasing).exchanged
    }
}

/// The links of one operation to others: what it waits for, strongly, and what waits for it, by its node.
///
/// Most operations of a graph have one or two of each, so the first of each needs no array.
struct DependencyLinks {
    /// One link to an operation waited for.
    struct Upstream {
        /// The operation that the user named.
        ///
        /// If it is mapped, the edge leads to its original.
        var operation: Operation
        let edge: DependencyEdge
        let source: Source
    }

    /// What reports that a dependency has ended.
    enum Source {
        /// The dependency is a plain `Foundation.Operation`, which a watcher follows.
        case watcher(PlainOperationWatcher)
        case node(DependencyNode)
        /// The dependency had already ended.
        case ended
    }

    private var upstream = FewOrMany<Upstream>()
    private var downstream = FewOrMany<DependencyEdge>()
    /// What only operations with many links need.
    private var index: DependencyIndex?
    private var cutCount: Int32 = 0
    /// How many were ever added.
    private(set) var additions: Int32 = 0
    /// Whether the operation ended and those that waited for it are being told.
    private(set) var isSettled = false
    /// Who is told when the last one waited for ended.
    var listener = DependencyListener.nobody

    var isEmpty: Bool { upstream.isEmpty && downstream.isEmpty }
    var upstreamCount: Int { upstream.count }
    var downstreamCount: Int { downstream.count }

    /// The operations waited for, each once.
    var upstreamOperations: [Operation] {
        var seen: Set<ObjectIdentifier> = []
        return upstream.map(\.operation).filter { seen.insert(ObjectIdentifier($0)).inserted }
    }

    /// Those of this package that have not ended.
    var liveUpstream: [ManagedOperation] {
        upstream.compactMap { $0.edge.isLive ? ($0.operation as? ManagedOperation)?.life : nil }
    }

    /// The nodes of the live upstream operations that had not ended when the link was made.
    var liveUpstreamNodes: [DependencyNode] {
        upstream.compactMap { link in
            if case .node(let node) = link.source, link.edge.isLive { node } else { nil }
        }
    }

    /// The live upstream operation to which a node belongs.
    func liveOperation(of node: DependencyNode) -> ManagedOperation? {
        let position = upstream.firstIndex { link in
            if case .node(let other) = link.source { other === node && link.edge.isLive } else { false }
        }
        return position.flatMap { (upstream[$0].operation as? ManagedOperation)?.life }
    }

    /// Those of any kind that have not ended, each once.
    var unendedUpstream: [Operation] {
        var seen: Set<ObjectIdentifier> = []
        return upstream.compactMap { $0.edge.isLive ? $0.operation : nil }
            .filter { seen.insert(ObjectIdentifier($0)).inserted }
    }

    /// Those that wait.
    var liveDownstream: [DependencyNode] {
        downstream.compactMap { $0.isLive ? $0.downstreamNode : nil }
    }

    func dependsOn(_ operation: Operation) -> Bool { position(of: operation) != nil }

    mutating func add(_ edge: DependencyEdge, to operation: Operation, _ source: Source) {
        upstream.append(Upstream(operation: operation, edge: edge, source: source))
        additions &+= 1
        if let index {
            index.add(operation, at: upstream.count - 1)
        } else if upstream.count >= Self.indexThreshold {
            let made = DependencyIndex()
            for (position, link) in upstream.enumerated() { made.add(link.operation, at: position) }
            index = made
        }
    }

    mutating func addDownstream(_ edge: DependencyEdge) {
        downstream.append(edge)
    }

    // What these return holds the links, to be let go of outside the lock. Their edges are still to be cut.

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
        index.remove(link.operation, at: position)
        if position < last {
            upstream.swapAt(position, last)
            index.move(upstream[position].operation, from: last, to: position)
        }
        upstream.remove(at: last)
        return link
    }

    /// Forgets cut edges once they are half of all, so that adding and removing for ever takes no memory.
    mutating func noteCutDownstream(_ count: Int) -> [DependencyEdge] {
        cutCount += Int32(clamping: count)
        guard Int(cutCount) * 2 > downstream.count else { return [] }
        cutCount = 0
        return downstream.removeAll(where: \.isCut)
    }

    /// Moves what the operation waited for to `place`, which is empty; returns who listens, and whether the operation had
    /// been settled.
    mutating func takeUpstream(_ place: inout FewOrMany<Upstream>) -> (listener: DependencyListener, isSettled: Bool) {
        index = nil
        swap(&upstream, &place)
        return (exchange(&listener, with: .nobody), isSettled)
    }

    mutating func takeDownstream() -> FewOrMany<DependencyEdge> {
        isSettled = true
        return exchange(&downstream, with: FewOrMany())
    }

    private static let indexThreshold = 9

    private func position(of operation: Operation) -> Int? {
        let operation = operation.originalOrSelf
        if let index { return index.position(of: operation) }
        return upstream.firstIndex { $0.operation.originalOrSelf === operation }
    }
}

/// An index that finds the links to one operation among many.
///
/// A mapped operation counts as its original.
///
/// Not Sendable on purpose: only touched under the lock of the links.
private final class DependencyIndex {
    /// One position for each operation.
    private var positions: [ObjectIdentifier: Int] = [:]
    /// All positions of the operations that have several links, each of which feeds another input.
    private var repeats: [ObjectIdentifier: Set<Int>] = [:]

    func position(of operation: Operation) -> Int? { positions[ObjectIdentifier(operation.originalOrSelf)] }

    func positions(of operation: Operation) -> Set<Int> {
        let key = ObjectIdentifier(operation.originalOrSelf)
        return repeats[key] ?? positions[key].map { [$0] } ?? []
    }

    func add(_ operation: Operation, at position: Int) {
        let key = ObjectIdentifier(operation.originalOrSelf)
        if let first = positions[key] {
            repeats[key, default: [first]].insert(position)
        } else {
            positions[key] = position
        }
    }

    func remove(_ operation: Operation, at position: Int) {
        let key = ObjectIdentifier(operation.originalOrSelf)
        repeats[key]?.remove(position)
        guard positions[key] == position else { return }
        positions[key] = repeats[key]?.first
        if positions[key] == nil { repeats[key] = nil }
    }

    func move(_ operation: Operation, from old: Int, to new: Int) {
        let key = ObjectIdentifier(operation.originalOrSelf)
        if repeats[key]?.remove(old) != nil { repeats[key]?.insert(new) }
        if positions[key] == old { positions[key] = new }
    }
}
