// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The operations in a queue with what they wait for and what waits for them, at one moment.
public struct QueueGraph: Sendable {
    /// One operation or closure.
    public struct Node: Sendable, Identifiable {
        /// Its position among the nodes.
        public let id: Int
        /// Its name.
        public let name: String
        /// Where it stands in the queue; nil if it is not in it.
        public let state: QueueEntry.State?
        /// Whether it has ended.
        public let hasEnded: Bool
        /// What it waits for in the middle of its work, as a group does for its children; nil while it does not.
        public let waitReason: WaitReason?
        /// The group whose child it is; nil if it is none.
        public internal(set) var group: Node.ID?

        package init(
            id: Int, name: String, state: QueueEntry.State?, hasEnded: Bool, waitReason: WaitReason? = nil,
            group: Node.ID? = nil
        ) {
            self.id = id
            self.name = name
            self.state = state
            self.hasEnded = hasEnded
            self.waitReason = waitReason
            self.group = group
        }
    }

    /// That one operation waits for another.
    public struct Edge: Sendable, Hashable {
        /// The one that is waited for.
        public let upstream: Node.ID
        /// The one that waits.
        public let downstream: Node.ID

        package init(upstream: Node.ID, downstream: Node.ID) {
            self.upstream = upstream
            self.downstream = downstream
        }
    }

    /// The queue's name.
    public let queue: String
    /// The operations, those in the queue first.
    public let nodes: [Node]
    /// What waits for what.
    public let edges: [Edge]
    /// How many entries of the queue were left out, because they were too many.
    public let omittedCount: Int

    package init(queue: String, nodes: [Node], edges: [Edge], omittedCount: Int = 0) {
        self.queue = queue
        self.nodes = nodes
        self.edges = edges
        self.omittedCount = omittedCount
    }
}

extension QueueGraph {
    /// Collects the nodes outside every lock; what happens meanwhile may be in it or not.
    init(_ snapshot: QueueSnapshot, limit: Int) {
        let limit = max(limit, 1)
        let entries = snapshot.entries.sorted { ($0.id.slot, $0.id.generation) < ($1.id.slot, $1.id.generation) }
        let left = Set(entries.dropFirst(limit).compactMap { $0.operation.map { ObjectIdentifier($0.originalOrSelf) } })
        var numbers: [ObjectIdentifier: Int] = [:], nodes: [Node] = [], edges: Set<Edge> = []
        for entry in entries.prefix(limit) {
            if let operation = entry.operation { numbers[ObjectIdentifier(operation.originalOrSelf)] = nodes.count }
            nodes.append(
                Node(
                    id: nodes.count, name: entry.name, state: snapshot.state(of: entry), hasEnded: false,
                    waitReason: entry.waitReason))
        }
        let mostNodes = nodes.count + limit
        // Nil for one of the queue's that was left out, and for more neighbours than there is room for.
        func number(of operation: Operation) -> Int? {
            let identity = ObjectIdentifier(operation.originalOrSelf)
            if let known = numbers[identity] { return known }
            guard !left.contains(identity), nodes.count < mostNodes else { return nil }
            numbers[identity] = nodes.count
            nodes.append(
                Node(
                    id: nodes.count, name: operation.displayName, state: nil, hasEnded: operation.isFinished,
                    waitReason: (operation as? ManagedOperation)?.waitReason))
            return nodes.count - 1
        }
        for entry in entries.prefix(limit) {
            guard let operation = entry.operation, let own = numbers[ObjectIdentifier(operation.originalOrSelf)] else {
                continue
            }
            for other in operation.dependencies.map(\.behindGate) {
                if let upstream = number(of: other) { edges.insert(Edge(upstream: upstream, downstream: own)) }
            }
            for other in (operation as? ManagedOperation)?.nodeIfAny?.listeningDownstream ?? [] {
                if let downstream = number(of: other) { edges.insert(Edge(upstream: own, downstream: downstream)) }
            }
        }
        for entry in entries.prefix(limit) {
            // The groups around it, whatever holds them.
            var inner = entry.operation as? ManagedOperation
            while let child = inner, let own = number(of: child), nodes[own].group == nil,
                let group = child.groupOfChild
            {
                nodes[own].group = number(of: group)
                inner = group
            }
            // Those of its children that are in no queue yet, or run in place.
            for child in (entry.operation as? ManagedOperation)?.groupEngine?.presentChildren ?? [] {
                guard nodes.count < mostNodes, let number = number(of: child), nodes[number].group == nil else {
                    continue
                }
                nodes[number].group = entry.operation.flatMap { numbers[ObjectIdentifier($0.originalOrSelf)] }
            }
        }
        let sorted = edges.sorted { ($0.upstream, $0.downstream) < ($1.upstream, $1.downstream) }
        self.init(
            queue: snapshot.queue, nodes: nodes, edges: sorted, omittedCount: max(entries.count - limit, 0))
    }
}

extension QueueManager {
    /// The operations in the queue, what they wait for and what waits for them, as far as that can be seen.
    ///
    /// - Parameter limit: How many entries of the queue are in it at most, and how many operations around them; readers of
    ///   pictures lose their way early.
    public func graph(limit: Int = 200) -> QueueGraph { QueueGraph(snapshot, limit: limit) }
}
