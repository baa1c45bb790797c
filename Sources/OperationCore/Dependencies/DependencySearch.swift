// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// One of the two searches for a cycle: along the dependents of an operation, or along its dependencies.
///
/// It counts ranks in its own direction: on its way they rise. It marks the nodes that it finds, so that the other search
/// sees them. Used under the lock of the component: see ``DependencyOrder``.
struct DependencySearch {
    let start: DependencyNode
    private let side: DependencyOrder.Side
    /// Nodes with a higher rank are left out.
    private(set) var bound = DependencyRank.zero
    /// The lowest rank among those that were left out.
    private(set) var nearestOutside: DependencyRank?
    /// How many nodes and links it looked at.
    private(set) var cost = 0
    private var found: [DependencyNode] = []
    /// By which of `found` each was found.
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

    /// What it will have cost after the next visit; nil if there is nothing left to visit.
    var costOfNext: Int? { next < found.count ? cost + 1 + found[next].linkCount(side) : nil }

    /// Visits the next node; returns it with a neighbour of it that the other search found, if there is one.
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

    /// Goes on to nodes of higher ranks, once the other search does not matter any more.
    mutating func widen(to bound: DependencyRank) {
        self.bound = bound
        nearestOutside = nil
        for node in found { node.mark = side }
        next = 0
        while next < found.count { _ = visit() }
        unmark()
    }

    /// The way from a node that was found back to the start.
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

    /// How many different ranks those have that were found.
    var rankCount: Int { found.count == 1 ? 1 : Set(found.map(rank)).count }

    /// Gives those that were found ranks from `limit` on, in their present order.
    ///
    /// None gets a lower rank than it has: so what comes before it from outside still does.
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

    /// Whether those that were found come after what they wait for, and before what waits for them.
    var isInOrder: Bool {
        found.allSatisfy { node in
            node.neighbours(.below).allSatisfy { node.rank < $0.rank }
                && node.neighbours(.above).allSatisfy { $0.rank < node.rank }
        }
    }
}
