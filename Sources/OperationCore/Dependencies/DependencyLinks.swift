// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

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
        case watcher(ForeignWatcher)
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
