// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import Synchronization

/// The position of an operation in the order of its component, after all of its dependencies.
///
/// Each new edge or operation extends the range of the order by about 2^40, so 128 bits are enough for any program.
typealias DependencyRank = Int128

/// Keeps the operations of a component in an order in which each operation comes after its dependencies.
///
/// An edge that agrees with the order closes no cycle and costs nothing. For any other edge, only the operations
/// between the ranks of its two ends matter. Two searches run within that window: one along the dependents of the
/// downstream operation, and one along the dependencies of the upstream operation. Each step goes to the search that
/// has cost less so far. If the two searches meet, there is a cycle. Otherwise the side whose search ends first is
/// moved past the other end of the edge. Nothing else is moved unless there is no room. So an edge to or from an
/// operation that has few other edges costs little, in whatever order a graph is built.
///
/// The order is used under the locks of the components: see ``DependencyComponent``. Meanwhile edges may end or be
/// removed, but none is added. The order stays correct with fewer edges.
struct DependencyOrder {
    /// The side of an edge on which a search found a node.
    enum Side: UInt8 {
        case neither
        /// The node waits for the downstream operation.
        case below
        /// The upstream operation waits for the node.
        case above
    }

    /// The distance at which a new operation is placed from the next one.
    private static let gap: DependencyRank = 1 << 40

    /// The nodes of the cycle that the edge would close, from the upstream node to the downstream one.
    ///
    /// Each node waits for the next one.
    private var cycle: [DependencyNode] = []
    private var below: DependencySearch
    private var above: DependencySearch

    init(_ downstream: DependencyNode, after upstream: DependencyNode) {
        below = DependencySearch(from: downstream, .below)
        above = DependencySearch(from: upstream, .above)
    }

    /// Returns whether an edge agrees with the order.
    ///
    /// A node without a rank gets one with which the edge agrees.
    static func agrees(_ downstream: DependencyNode, after upstream: DependencyNode) -> Bool {
        place(downstream, upstream)
        return upstream.rank < downstream.rank
    }

    /// Makes room in the order for an edge that does not agree with it.
    ///
    /// If the edge would close a cycle, this returns `false` and changes no rank.
    mutating func admit() -> Bool {
        let (downstream, upstream) = (below.start, above.start)
        below.begin(within: upstream.rank)
        above.begin(within: 0 &- downstream.rank)
        let finished = search()
        below.unmark()
        above.unmark()
        switch finished {
        case .below: Self.move(&below)
        case .above: Self.move(&above)
        case .neither: break
        }
        upstream.component.root.visits += below.cost + above.cost
        return finished != .neither
    }

    /// Gives both nodes a rank, and joins their components.
    private static func place(_ downstream: DependencyNode, _ upstream: DependencyNode) {
        guard downstream.component.hasSameRoot(as: upstream.component) else {
            if !downstream.isPlaced { downstream.place(at: 0) }
            if !upstream.isPlaced { upstream.place(at: 0) }
            // No edge leads from one component to the other, so one of them can be shifted as a whole.
            let shift = upstream.rank &+ gap &- downstream.rank
            return DependencyComponent.join(upstream.component.root, downstream.component.root, shifting: shift)
        }
        // A node without other edges gets a rank with which this edge agrees.
        if !upstream.isPlaced { upstream.place(at: downstream.isPlaced ? downstream.rank &- gap : 0) }
        if !downstream.isPlaced { downstream.place(at: upstream.rank &+ gap) }
    }

    /// Returns the side whose search ended first, or neither if there is a cycle.
    private mutating func search() -> Side {
        while true {
            guard let lower = below.costOfNext else { return .below }
            guard let upper = above.costOfNext else { return .above }
            if lower <= upper {
                guard let (visited, met) = below.visit() else { continue }
                cycle = above.way(to: met).reversed() + below.way(to: visited)
            } else {
                guard let (visited, met) = above.visit() else { continue }
                cycle = above.way(to: visited).reversed() + below.way(to: met)
            }
            return .neither
        }
    }

    /// Returns the operations along the cycle, from `upstream` to the downstream one, or `nil` if the cycle no longer
    /// exists.
    ///
    /// Do not call it under a lock, because it may release the last reference to an operation.
    func cycle(from upstream: Operation) -> [Operation]? {
        var operations = [upstream]
        for (node, next) in zip(cycle, cycle.dropFirst()) {
            guard let operation = node.operation(of: next) else { return nil }
            operations.append(operation)
        }
        return operations
    }

    /// Moves all nodes of a side past the other end of the edge, and keeps their order.
    ///
    /// There is room up to the nearest node outside of the side. If that node is too near, it is moved away as well,
    /// together with the nodes close to it. These nodes are then far apart again, so that room is rarely needed.
    private static func move(_ side: inout DependencySearch) {
        let limit = side.bound
        var count = side.rankCount
        if let nearest = side.nearestOutside, nearest &- limit <= DependencyRank(count) {
            while let nearest = side.nearestOutside, step(to: nearest, from: limit, count) < roomyStep(count) {
                side.widen(to: limit &+ 2 &* (nearest &- limit))
                count = side.rankCount
            }
        }
        let step = side.nearestOutside.map { Self.step(to: $0, from: limit, count) } ?? max(gap, roomyStep(count))
        side.spread(from: limit, step: step)
        assert(side.isInOrder)
    }

    private static func step(to nearest: DependencyRank, from limit: DependencyRank, _ count: Int) -> DependencyRank {
        (nearest &- limit) / DependencyRank(count + 1)
    }

    /// The distance between nodes after `count` nodes were moved to make room.
    ///
    /// The more nodes are moved, the farther apart they are, so that the room lasts longer.
    private static func roomyStep(_ count: Int) -> DependencyRank { DependencyRank(count) << 16 }
}

/// A part of the graph whose operations are connected with each other, in any direction, and with no other operations.
///
/// Edges within a component are added under its lock, one at a time. An edge between two components joins them, under
/// the locks of both. So two threads cannot each add half of a cycle, and graphs that are not connected share no lock.
/// Ends, starts, cancellations and the removal of edges take none of these locks, and a component is never split.
///
/// The components form a forest. A component that was joined to another one points to it, and stores by how much its
/// ranks are shifted there. The smaller component is joined to the larger one, so the path to the root is short, and no
/// node has to be visited.
final class DependencyComponent: Sendable {
    private let lock = Locked(())
    /// The component to which this one was joined.
    ///
    /// The parent is set once, under the locks of both, and released with this component. Every edge reads it several
    /// times. The library's `AtomicLazyReference` is not used because each of its reads took 600 instructions, more
    /// than half of the cost of an edge.
    private let parent = Atomic<Unmanaged<DependencyComponent>?>(nil)
    // Sendable: written once, before `parent` is set, and read after `parent` was loaded.
    private nonisolated(unsafe) var shift = DependencyRank.zero
    // Sendable: only touched under `lock`.
    private nonisolated(unsafe) var weight = 1
    // Sendable: only touched under `lock`.
    /// The number of nodes and links that searches looked at, for tests.
    nonisolated(unsafe) var visits = 0

    deinit { parent.load(ordering: .acquiring)?.release() }

    /// The component to which the operations of this one belong now.
    @inline(__always)
    var root: DependencyComponent { isRoot ? self : distantRoot.takeUnretainedValue() }

    /// The root, which this component keeps alive.
    ///
    /// Each edge needs the root a few times, so it is not retained each time.
    @inline(__always)
    private var unretainedRoot: Unmanaged<DependencyComponent> {
        isRoot ? Unmanaged.passUnretained(self) : distantRoot
    }

    private var distantRoot: Unmanaged<DependencyComponent> {
        // Each component on the way is kept by the one before, and the first one by this.
        var component = Unmanaged.passUnretained(self)
        while let next = component._withUnsafeGuaranteedRef({ $0.next }) { component = next }
        return component
    }

    func hasSameRoot(as other: DependencyComponent) -> Bool {
        unretainedRoot.toOpaque() == other.unretainedRoot.toOpaque()
    }

    /// The number to add to a rank in this component to get the rank in the root.
    @inline(__always)
    var shiftToRoot: DependencyRank { isRoot ? 0 : distantShift }

    private var distantShift: DependencyRank {
        defer { extendLifetime(self) }
        var component = Unmanaged.passUnretained(self)
        var sum = DependencyRank.zero
        while let next = component._withUnsafeGuaranteedRef({ $0.next }) {
            sum &+= component._withUnsafeGuaranteedRef { $0.shift }
            component = next
        }
        return sum
    }

    @inline(__always)
    private var next: Unmanaged<DependencyComponent>? { parent.load(ordering: .acquiring) }

    @inline(__always)
    private var isRoot: Bool { next == nil }

    /// Runs `body` under the lock of the component to which two nodes belong, or under those of both components.
    ///
    /// Two locks are taken in the order of their addresses.
    static func withRoots<Result>(
        of one: DependencyComponent, _ other: DependencyComponent, _ body: () -> Result
    ) -> Result {
        while true {
            var (first, second) = (one.unretainedRoot, other.unretainedRoot)
            if second.toOpaque() < first.toOpaque() { swap(&first, &second) }
            // If a component was joined to another one in the meantime, the loop starts over. Each join leaves one root
            // fewer, so this happens rarely.
            let result = first._withUnsafeGuaranteedRef {
                $0.whileRoot {
                    if first.toOpaque() == second.toOpaque() { return body() }
                    return second._withUnsafeGuaranteedRef { $0.whileRoot(body) }
                }
            }
            extendLifetime(one)
            extendLifetime(other)
            if let result { return result }
        }
    }

    /// Runs `body` under the lock, or returns `nil` if the component was joined to another one.
    @inline(__always)
    private func whileRoot<Result>(_ body: () -> Result?) -> Result? {
        lock.withLock { _ in isRoot ? body() : nil }
    }

    /// Joins two components into one, in which the ranks of the second one are shifted by the given number.
    ///
    /// Called for two roots, under the locks of both.
    static func join(_ first: DependencyComponent, _ second: DependencyComponent, shifting shift: DependencyRank) {
        let isSecondLarger = second.weight > first.weight
        let (root, joined) = isSecondLarger ? (second, first) : (first, second)
        root.weight += joined.weight
        root.visits += joined.visits
        joined.shift = isSecondLarger ? 0 &- shift : shift
        joined.parent.store(Unmanaged.passRetained(root), ordering: .releasing)
    }

    /// Notes that a node got its place in the component, which counts for the root.
    ///
    /// Called under the lock of the root.
    func countNode() { root.weight += 1 }
}

/// One of the two searches for a cycle: along the dependents of an operation, or along its dependencies.
///
/// Ranks are counted in the direction of the search, so that they rise along the way. The search marks the nodes that
/// it finds, so that the other search sees them. The search is used under the lock of the component: see
/// ``DependencyOrder``.
struct DependencySearch {
    let start: DependencyNode
    private let side: DependencyOrder.Side
    /// The search leaves out nodes with a higher rank.
    private(set) var bound = DependencyRank.zero
    /// The lowest rank of the nodes that were left out.
    private(set) var nearestOutside: DependencyRank?
    /// The number of nodes and links that the search looked at.
    private(set) var cost = 0
    private var found: [DependencyNode] = []
    /// For each node in `found`, the index of the node from which it was found.
    private var parents: [Int] = []
    private var next = 0

    init(from start: DependencyNode, _ side: DependencyOrder.Side) {
        self.start = start
        self.side = side
    }

    mutating func begin(within bound: DependencyRank) {
        self.bound = bound
        find(start, by: -1)
    }

    /// The cost after the next visit, or `nil` if no node is left to visit.
    var costOfNext: Int? { next < found.count ? cost + 1 + found[next].linkCount(side) : nil }

    /// Visits the next node.
    ///
    /// If the node has a neighbor that the other search found, this returns both. Otherwise, it returns `nil`.
    mutating func visit() -> (visited: DependencyNode, met: DependencyNode)? {
        let visited = found[next]
        let neighbours = visited.neighbours(side)
        cost += 1 + neighbours.count
        for neighbour in neighbours where neighbour.mark != side {
            guard neighbour.mark == .neither else { return (visited, neighbour) }
            let rank = rank(of: neighbour)
            if rank <= bound {
                find(neighbour, by: next)
            } else {
                nearestOutside = min(nearestOutside ?? rank, rank)
            }
        }
        next += 1
        return nil
    }

    /// Continues to nodes with higher ranks, when the other search is over.
    mutating func widen(to bound: DependencyRank) {
        self.bound = bound
        nearestOutside = nil
        for node in found { node.mark = side }
        next = 0
        while next < found.count { _ = visit() }
        unmark()
    }

    /// Returns the path from a found node back to the start.
    func way(to node: DependencyNode) -> [DependencyNode] {
        var way: [DependencyNode] = []
        var position = found.lastIndex { $0 === node } ?? -1
        while position >= 0 {
            way.append(found[position])
            position = parents[position]
        }
        return way
    }

    func unmark() {
        for node in found { node.mark = .neither }
    }

    private mutating func find(_ node: DependencyNode, by parent: Int) {
        node.mark = side
        found.append(node)
        parents.append(parent)
    }

    // Moving the found nodes.

    /// The number of different ranks among the found nodes.
    var rankCount: Int { found.count == 1 ? 1 : Set(found.map(rank)).count }

    /// Gives the found nodes ranks above `limit`, in their present order.
    ///
    /// No node gets a lower rank than it has, so the nodes outside of the search that come before it still do.
    func spread(from limit: DependencyRank, step: DependencyRank) {
        var new = limit
        var last: DependencyRank?
        for (rank, node) in found.map({ (rank(of: $0), $0) }).sorted(by: { $0.0 < $1.0 }) {
            if rank != last { new &+= step }
            last = rank
            set(max(rank, new), of: node)
        }
    }

    private func rank(of node: DependencyNode) -> DependencyRank { side == .below ? node.rank : 0 &- node.rank }

    private func set(_ rank: DependencyRank, of node: DependencyNode) {
        node.place(at: side == .below ? rank : 0 &- rank)
    }

    /// Whether each found node comes after its dependencies and before its dependents.
    var isInOrder: Bool {
        found.allSatisfy { node in
            node.neighbours(.below).allSatisfy { node.rank < $0.rank }
                && node.neighbours(.above).allSatisfy { $0.rank < node.rank }
        }
    }
}
