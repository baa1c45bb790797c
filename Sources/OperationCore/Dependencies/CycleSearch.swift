// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Looks for a way from the operation that is to wait to the one that it is to wait for.
///
/// Two searches go on side by side, one along the dependencies of the upstream operation and one along the dependents of
/// the downstream one, always the one that has cost less so far, and the first to run out decides. So an edge to or from
/// an operation that has few others costs little, in whatever order a graph is built.
struct CycleSearch {
    private struct Frontier<Vertex: AnyObject> {
        private(set) var found: [Vertex]
        private var parents: [ObjectIdentifier: Int] = [:]
        private var next = 0
        private var cost = 0
        private var visitCost: Int?
        /// Kept until the search is let go of, outside the lock: one of them may be freed by that.
        private var met: [[Vertex]] = []

        init(_ start: Vertex) {
            found = [start]
            parents[ObjectIdentifier(start)] = -1
        }

        /// The links looked at so far, those of the next visit included; nil if there is nothing left to visit.
        mutating func costOfNext(_ count: (Vertex) -> Int) -> Int? {
            guard next < found.count else { return nil }
            if visitCost == nil { visitCost = 1 + count(found[next]) }
            return cost + (visitCost ?? 0)
        }

        /// Visits the next vertex; returns whether `goal` is a neighbour of it.
        mutating func visit(goal: Vertex?, _ neighbours: (Vertex) -> [Vertex]) -> Bool {
            let visited = next
            next += 1
            cost += visitCost ?? 1
            visitCost = nil
            let present = neighbours(found[visited])
            met.append(present)
            for neighbour in present where parents[ObjectIdentifier(neighbour)] == nil {
                parents[ObjectIdentifier(neighbour)] = visited
                found.append(neighbour)
                if neighbour === goal { return true }
            }
            return false
        }

        /// The way back from the last vertex found to the start.
        var wayBack: [Vertex] {
            var way: [Vertex] = []
            var position = found.count - 1
            while position >= 0 {
                way.append(found[position])
                position = parents[ObjectIdentifier(found[position])] ?? -1
            }
            return way
        }
    }

    private let downstream: ManagedOperation
    private let upstream: ManagedOperation
    private var up: Frontier<ManagedOperation>
    private var down: Frontier<DependencyNode>
    private var isFound = false
    /// A search that was begun anew: what it met is let go of with the rest, outside the lock.
    private var putAside: Frontier<ManagedOperation>?

    init(from downstream: ManagedOperation, to upstream: ManagedOperation) {
        self.downstream = downstream
        self.upstream = upstream
        up = Frontier(upstream)
        down = Frontier(downstream.node)
    }

    /// Whether the new edge would close a cycle.
    mutating func run() -> Bool {
        while !isFound {
            let downCost = down.costOfNext { $0.downstreamCount }
            let upCost = up.costOfNext { $0.nodeIfAny?.upstreamCount ?? 0 }
            guard let downCost, let upCost else { return false }
            if downCost <= upCost {
                guard down.visit(goal: upstream.nodeIfAny, { $0.liveDownstream }) else { continue }
                // The way is named by the operations on it, which only a search from above meets.
                isFound = true
                putAside = exchange(&up, with: Frontier(upstream))
                while !visitUp(), up.costOfNext({ _ in 0 }) != nil {}
            } else {
                isFound = visitUp()
            }
        }
        return true
    }

    private mutating func visitUp() -> Bool {
        up.visit(goal: downstream) { $0.nodeIfAny?.liveUpstream ?? [] }
    }

    /// The cycle, each operation waiting for the next.
    ///
    /// Not to be asked for under a lock: a name may be the user's code.
    var path: [String] {
        guard isFound else { return [] }
        return [downstream.displayName] + up.wayBack.reversed().map(\.displayName)
    }
}
