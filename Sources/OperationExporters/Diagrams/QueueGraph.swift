// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

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
            for other in (operation as? ManagedOperation)?.listeningDownstream ?? [] {
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

// The same graph in the languages of two programs that draw it.
extension QueueGraph {
    /// The graph for Graphviz: `dot -Tsvg`.
    public var dot: String {
        var lines = ["digraph \(dotQuoted(queue)) {", "    rankdir=LR;", "    bgcolor=\"white\";"]
        lines.append("    node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\"];")
        for node in nodes {
            let label = dotQuoted("\(node.name)\n\(node.standing)")
            lines.append("    n\(node.id) [label=\(label), fillcolor=\"\(node.colour)\"];")
        }
        for edge in edges { lines.append("    n\(edge.upstream) -> n\(edge.downstream);") }
        for node in nodes {
            if let group = node.group { lines.append("    n\(group) -> n\(node.id) [style=dashed, arrowhead=none];") }
        }
        if omittedCount > 0 {
            lines.append("    more [label=\"and \(omittedCount) more\", shape=plaintext, style=\"\"];")
        }
        return (lines + ["}"]).joined(separator: "\n") + "\n"
    }

    /// The graph for Mermaid, which GitHub and others draw within Markdown.
    public var mermaid: String {
        var lines = ["flowchart LR"]
        for node in nodes {
            let label = "\(mermaidEscaped(node.name))<br/>\(mermaidEscaped(node.standing))"
            lines.append("    n\(node.id)[\"\(label)\"]:::\(node.style)")
        }
        for edge in edges { lines.append("    n\(edge.upstream) --> n\(edge.downstream)") }
        for node in nodes { if let group = node.group { lines.append("    n\(group) -.- n\(node.id)") } }
        if omittedCount > 0 { lines.append("    more[\"and \(omittedCount) more\"]") }
        for (style, colour) in Node.colours.sorted(by: { $0.key < $1.key }) {
            lines.append("    classDef \(style) fill:\(colour),stroke:#555,color:#000")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// A string in quotes: there the only characters with a meaning are the quote and the backslash.
    private func dotQuoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            default: quoted.unicodeScalars.append(scalar.isControl ? " " : scalar)
            }
        }
        return quoted + "\""
    }

    /// Everything with a meaning to Mermaid, Markdown or HTML becomes an entity by its number.
    private func mermaidEscaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            if "\"#&;<>`[](){}|\\*_~%".unicodeScalars.contains(scalar) {
                escaped += "#\(scalar.value);"
            } else {
                escaped.unicodeScalars.append(scalar.isControl ? " " : scalar)
            }
        }
        return escaped
    }
}

extension QueueGraph.Node {
    fileprivate static let colours = [
        "waiting": "#d9d9d9", "held": "#fdd49e", "ready": "#fff3a3", "running": "#9ecae1", "ending": "#f4a6a6",
        "ended": "#b7e1b0", "outside": "#ffffff",
    ]

    fileprivate var style: String { state?.rawValue ?? (hasEnded ? "ended" : "outside") }
    fileprivate var colour: String { Self.colours[style] ?? "#ffffff" }
    fileprivate var standing: String {
        let place = state?.rawValue ?? (hasEnded ? "ended" : group == nil ? "not in this queue" : "in its group")
        return waitReason.map { "\(place), \($0)" } ?? place
    }
}

extension Unicode.Scalar {
    fileprivate var isControl: Bool { properties.generalCategory == .control }
}

/// The chain of dependencies that took longest: what to make faster if the whole is to be faster.
public struct CriticalPath: Sendable, Equatable {
    /// The operations of the chain, from the first to the last.
    public let runs: [QueueRun.ID]
    /// How long they executed, all together.
    public let duration: Duration
    /// By how much longer each operation could have executed without making the longest chain longer.
    public let slack: [QueueRun.ID: Duration]
}

extension QueueRecord {
    /// The chain of dependencies whose operations executed longest, and how much room each other operation has.
    ///
    /// Only time spent executing counts: what an operation waited for a place is the queue's doing, not the graph's.
    public var criticalPath: CriticalPath {
        let order = runsInOrder
        let times = Dictionary(uniqueKeysWithValues: runs.map { ($0.id, $0.executing ?? .zero) })
        // The longest chain that ends with an operation, and the longest that begins with it.
        var ending: [QueueRun.ID: Duration] = [:], before: [QueueRun.ID: QueueRun.ID] = [:]
        for run in order {
            let longest = run.dependencies.compactMap { id in ending[id].map { (id, $0) } }.max { $0.1 < $1.1 }
            ending[run.id] = (longest?.1 ?? .zero) + (times[run.id] ?? .zero)
            before[run.id] = longest?.0
        }
        var following: [QueueRun.ID: Duration] = [:]
        for run in order.reversed() {
            let tail = (times[run.id] ?? .zero) + (following[run.id] ?? .zero)
            for id in run.dependencies { following[id] = max(following[id] ?? .zero, tail) }
        }
        guard let last = order.max(by: { (ending[$0.id] ?? .zero) < (ending[$1.id] ?? .zero) }) else {
            return CriticalPath(runs: [], duration: .zero, slack: [:])
        }
        let duration = ending[last.id] ?? .zero
        let path = Array(sequence(first: last.id) { before[$0] }).reversed()
        let slack = ending.map { id, time in (id, duration - time - (following[id] ?? .zero)) }
        return CriticalPath(
            runs: Array(path), duration: duration, slack: Dictionary(uniqueKeysWithValues: slack))
    }

    /// Each after those that it waited for.
    private var runsInOrder: [QueueRun] {
        let byID = Dictionary(uniqueKeysWithValues: runs.map { ($0.id, $0) })
        var missing: [QueueRun.ID: Int] = [:], dependents: [QueueRun.ID: [QueueRun.ID]] = [:]
        for run in runs {
            let known = run.dependencies.filter { byID[$0] != nil }
            missing[run.id] = known.count
            for id in known { dependents[id, default: []].append(run.id) }
        }
        var order = runs.filter { missing[$0.id] == 0 }
        var next = 0
        while next < order.count {
            for id in dependents[order[next].id] ?? [] {
                missing[id, default: 0] -= 1
                if missing[id] == 0, let run = byID[id] { order.append(run) }
            }
            next += 1
        }
        return order
    }
}
