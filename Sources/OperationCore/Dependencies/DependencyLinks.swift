// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The links of one operation to others: what it waits for, strongly, and what waits for it, by its node.
///
/// Most operations of a graph have one or two of each, so the first of each needs no array.
struct DependencyLinks {
    /// One link to an operation waited for.
    struct Upstream {
        var operation: Operation
        let edge: DependencyEdge
        /// What tells of the end of an operation that is not of this package.
        let watcher: ForeignWatcher?
    }

    private var upstream = FewOrMany<Upstream>()
    private var downstream = FewOrMany<DependencyEdge>()
    /// What only operations with many links need.
    private var index: UpstreamIndex?
    private var cutCount: Int32 = 0
    /// How many were ever added.
    private(set) var additions: Int32 = 0
    /// Whether the operation ended and those that waited for it are being told.
    private(set) var isSettled = false
    /// Who is told when the last one waited for ended.
    var listener = DependencyListener.nobody

    private struct UpstreamIndex {
        /// Where in `upstream` to find an operation.
        var positions: [ObjectIdentifier: Int] = [:]
        /// Whether an operation may be there with several edges, each feeding another input.
        var hasRepeats = false
    }

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

    mutating func add(_ edge: DependencyEdge, to operation: Operation, watcher: ForeignWatcher? = nil) {
        if index != nil, dependsOn(operation) { index?.hasRepeats = true }
        upstream.append(Upstream(operation: operation, edge: edge, watcher: watcher))
        additions &+= 1
        if index != nil {
            index?.positions[ObjectIdentifier(operation)] = upstream.count - 1
        } else if upstream.count >= Self.indexThreshold {
            makeIndex()
        }
    }

    private mutating func makeIndex() {
        var made = UpstreamIndex()
        for (position, link) in upstream.enumerated() {
            let old = made.positions.updateValue(position, forKey: ObjectIdentifier(link.operation))
            if old != nil { made.hasRepeats = true }
        }
        index = made
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

    /// Removes one edge.
    mutating func remove(_ edge: DependencyEdge) -> [Upstream] {
        upstream.firstIndex { $0.edge === edge }.map { [removeLink(at: $0)] } ?? []
    }

    private mutating func removeLink(at position: Int) -> Upstream {
        let link = upstream[position]
        guard let hasRepeats = index?.hasRepeats else {
            upstream.remove(at: position)
            return link
        }
        let last = upstream.count - 1
        upstream.swapAt(position, last)
        upstream.remove(at: last)
        index?.positions[ObjectIdentifier(link.operation)] =
            hasRepeats ? upstream.firstIndex { $0.operation === link.operation } : nil
        if position < last { index?.positions[ObjectIdentifier(upstream[position].operation)] = position }
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
        if let index { return index.positions[ObjectIdentifier(operation)] }
        return upstream.firstIndex { $0.operation === operation }
    }
}
