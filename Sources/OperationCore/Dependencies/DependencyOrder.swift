// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

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
/// It is used under the locks of the components: see ``DependencyComponent``. Meanwhile edges may end or be removed,
/// but none is added. The order stays correct with fewer edges.
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

    /// Returns whether an edge agrees with the order; nodes that have no rank get one with which it does.
    static func agrees(_ downstream: DependencyNode, after upstream: DependencyNode) -> Bool {
        place(downstream, upstream)
        return upstream.rank < downstream.rank
    }

    /// Makes room in the order for an edge that does not agree with it.
    ///
    /// Returns false and changes no rank if the edge would close a cycle.
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
        let (lower, upper) = (downstream.component.root, upstream.component.root)
        guard lower === upper else {
            if !downstream.isPlaced { downstream.place(at: 0) }
            if !upstream.isPlaced { upstream.place(at: 0) }
            // No edge leads from one component to the other, so one of them can be shifted as a whole.
            let shift = upstream.rank &+ gap &- downstream.rank
            return DependencyComponent.join(upper, lower, shifting: shift)
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

    /// Returns the operations along the cycle, from `upstream` to the downstream one; nil if the cycle no longer
    /// exists.
    ///
    /// Do not call it under a lock, because it may release the last reference to an operation.
    func cycle(from upstream: ManagedOperation) -> [ManagedOperation]? {
        var operations = [upstream]
        for (node, next) in zip(cycle, cycle.dropFirst()) {
            guard let operation = node.operation(of: next) else { return nil }
            operations.append(operation)
        }
        return operations
    }

    /// Moves all nodes of a side past the other end of the edge, and keeps their order.
    ///
    /// There is room up to the nearest node outside of the side. If that node is too near, it is moved away, too,
    /// together with the nodes close to it: so many that they are far apart again and room is rarely needed.
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

    /// The distance between nodes after so many were moved to make room.
    ///
    /// The more nodes are moved, the farther apart they are, so that the room lasts longer.
    private static func roomyStep(_ count: Int) -> DependencyRank { DependencyRank(count) << 16 }
}
