// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The links of one operation to others: what it waits for, strongly, and what waits for it, weakly.
struct DependencyLinks {
    /// One link to an operation waited for.
    struct Upstream {
        let operation: Operation
        let edge: DependencyEdge
        /// What tells of the end of an operation that is not of this package.
        let watcher: ForeignWatcher?
    }

    private var upstream: [Upstream] = []
    private var downstream: [DependencyEdge] = []
    /// Where in `upstream` to find an operation; made when looking through it would be slow.
    private var positions: [ObjectIdentifier: Int] = [:]
    /// Whether an operation may be there with several edges, each feeding another input.
    private var hasRepeats = false
    private var cutCount = 0
    /// How many of those it waits for have not ended.
    private(set) var unended = 0
    /// How many were ever added.
    private(set) var additions = 0

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
        upstream.compactMap { $0.edge.isLive ? $0.operation as? ManagedOperation : nil }
    }

    /// Those that wait and are still there.
    var liveDownstream: [ManagedOperation] {
        downstream.compactMap { $0.isLive ? $0.downstream : nil }
    }

    func dependsOn(_ operation: Operation) -> Bool { position(of: operation) != nil }

    mutating func add(_ edge: DependencyEdge, to operation: Operation, watcher: ForeignWatcher? = nil) {
        if dependsOn(operation) { hasRepeats = true }
        upstream.append(Upstream(operation: operation, edge: edge, watcher: watcher))
        unended += 1
        additions += 1
        if upstream.count == Self.indexThreshold, positions.isEmpty {
            for (position, link) in upstream.enumerated() { positions[ObjectIdentifier(link.operation)] = position }
        } else if !positions.isEmpty {
            positions[ObjectIdentifier(operation)] = upstream.count - 1
        }
    }

    mutating func addDownstream(_ edge: DependencyEdge) {
        downstream.append(edge)
    }

    mutating func noteEnd() {
        unended -= 1
    }

    // What these return holds the links, to be let go of outside the lock.

    /// Removes the edges to `operation`.
    mutating func remove(_ operation: Operation) -> [Upstream] {
        var removed: [Upstream] = []
        while let position = position(of: operation) { removed.append(removeLink(at: position)) }
        return removed
    }

    /// Removes one edge.
    mutating func remove(_ edge: DependencyEdge) -> [Upstream] {
        upstream.firstIndex { $0.edge === edge }.map { [removeLink(at: $0)] } ?? []
    }

    private mutating func removeLink(at position: Int) -> Upstream {
        let link = upstream[position]
        if positions.isEmpty {
            upstream.remove(at: position)
        } else {
            upstream.swapAt(position, upstream.count - 1)
            upstream.removeLast()
            positions[ObjectIdentifier(link.operation)] =
                hasRepeats ? upstream.firstIndex { $0.operation === link.operation } : nil
            if position < upstream.count { positions[ObjectIdentifier(upstream[position].operation)] = position }
        }
        if link.edge.cut() { unended -= 1 }
        return link
    }

    /// Forgets cut edges once they are half of all, so that adding and removing for ever takes no memory.
    mutating func noteCutDownstream(_ count: Int) -> [DependencyEdge] {
        cutCount += count
        guard cutCount * 2 > downstream.count else { return [] }
        cutCount = 0
        let cut = downstream.filter(\.isCut)
        downstream.removeAll(where: \.isCut)
        return cut
    }

    /// Cuts what is left of the edges to others, whose ends do not matter any more.
    func cutUpstream() {
        for link in upstream where link.edge.cut() {
            withExtendedLifetime(link.edge.takeJudge()) {}
            (link.operation as? ManagedOperation)?.forgetCutEdges(1)
        }
    }

    mutating func takeDownstream() -> [DependencyEdge] {
        exchange(&downstream, with: [])
    }

    private static let indexThreshold = 9

    private func position(of operation: Operation) -> Int? {
        if !positions.isEmpty { return positions[ObjectIdentifier(operation)] }
        return upstream.firstIndex { $0.operation === operation }
    }
}
