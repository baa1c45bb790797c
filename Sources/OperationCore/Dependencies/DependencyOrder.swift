// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Where an operation stands in the order of its component: after all that it waits for.
///
/// A new edge or a new operation moves the ends of the order by about 2^40, so 128 bits are enough for any program.
typealias DependencyRank = Int128

/// Keeps the operations of a component in an order in which each comes after those that it waits for.
///
/// An edge that agrees with the order closes no cycle, and costs nothing. For one against it, all that is in question lies
/// between the ranks of its two ends. So the dependents of the downstream operation and the dependencies of the upstream
/// one are searched within that window, always the side that has cost less so far. Where they meet there is a cycle. Else
/// the side that runs out first is moved past the other end, and nothing else is moved. So an edge to or from an operation
/// that has few others costs little, in whatever order a graph is built.
///
/// Used under the locks of the components: see ``DependencyComponent``. Edges may end or be removed meanwhile, but none
/// is added, and fewer edges need no other order.
struct DependencyOrder {
    /// On which side of an edge a search met a node.
    enum Side: UInt8 {
        case neither
        /// It waits for the downstream operation.
        case below
        /// The upstream operation waits for it.
        case above
    }

    /// How far an operation is placed from the next one.
    private static let gap: DependencyRank = 1 << 40

    /// The nodes of the cycle that the edge would have closed, from the upstream one to the downstream one: each waits for
    /// the next.
    private var cycle: [DependencyNode] = []
    private var below: DependencySearch
    private var above: DependencySearch

    init(_ downstream: DependencyNode, after upstream: DependencyNode) {
        below = DependencySearch(from: downstream, .below)
        above = DependencySearch(from: upstream, .above)
    }

    /// Makes room for the edge in the order; false, and no rank has changed, if it would close a cycle.
    mutating func admit() -> Bool {
        let (downstream, upstream) = (below.start, above.start)
        place(downstream, upstream)
        if upstream.rank < downstream.rank { return true }
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

    /// Sees to it that both nodes have a rank, and are of the same component.
    private func place(_ downstream: DependencyNode, _ upstream: DependencyNode) {
        let (lower, upper) = (downstream.component.root, upstream.component.root)
        guard lower === upper else {
            if !downstream.isPlaced { downstream.place(at: 0) }
            if !upstream.isPlaced { upstream.place(at: 0) }
            // Nothing leads from one component to the other, so one of them may be shifted as a whole.
            let shift = upstream.rank &+ Self.gap &- downstream.rank
            return DependencyComponent.join(upper, lower, shifting: shift)
        }
        // A node without other edges stands where this edge agrees with the order.
        if !upstream.isPlaced { upstream.place(at: downstream.isPlaced ? downstream.rank &- Self.gap : 0) }
        if !downstream.isPlaced { downstream.place(at: upstream.rank &+ Self.gap) }
    }

    /// Returns the side that ran out, or neither if there is a cycle.
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

    /// The operations along the cycle, from `upstream` to the downstream one; nil if it is none any more.
    ///
    /// Not to be asked for under a lock: one of them may be freed by this.
    func cycle(from upstream: ManagedOperation) -> [ManagedOperation]? {
        var operations = [upstream]
        for (node, next) in zip(cycle, cycle.dropFirst()) {
            guard let operation = node.operation(of: next) else { return nil }
            operations.append(operation)
        }
        return operations
    }

    /// Moves all of a side past the other end of the edge, in its present order.
    ///
    /// There is room up to the nearest node outside of the side. Where that is too near, it is moved away itself, and all
    /// that is close to it: as many nodes as it takes for them to be far apart again, so that making room is rare.
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

    /// How far apart nodes are to be after so many were moved to make room: the more they are, the longer it lasts.
    private static func roomyStep(_ count: Int) -> DependencyRank { DependencyRank(count) << 16 }
}
