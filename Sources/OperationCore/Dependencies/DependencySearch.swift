// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// One of the two searches for a cycle: along the dependents of an operation, or along its dependencies.
///
/// Ranks are counted in the direction of the search, so that they rise along the way. The search marks the nodes that
/// it finds, so that the other search sees them. It is used under the lock of the component: see ``DependencyOrder``.
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

    /// The cost after the next visit; nil if no node is left to visit.
    var costOfNext: Int? { next < found.count ? cost + 1 + found[next].linkCount(side) : nil }

    /// Visits the next node.
    ///
    /// If it has a neighbor that the other search found, returns both; otherwise returns nil.
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

    /// The path from a found node back to the start.
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

    // Moving what was found.

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
