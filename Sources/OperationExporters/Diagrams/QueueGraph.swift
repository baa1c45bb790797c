// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A graph that shows the operations and closures in a queue, their dependencies and their groups at one moment.
public struct QueueGraph: Sendable {
    /// A node that represents an operation or a closure.
    package struct Node: Sendable, Identifiable {
        /// The index of the node in ``QueueGraph/nodes``.
        package let id: Int
        /// The name of the operation.
        package let name: String
        /// The state of the operation in the queue, or `nil` if it is not in the queue.
        package let state: QueueEntry.State?
        /// A Boolean value that indicates whether the operation has ended.
        package let hasEnded: Bool
        /// The reason why a running operation waits without a slot, or `nil` if the operation does not wait.
        package let waitReason: WaitReason?
        /// The ID of the node that represents the operation's group, or `nil` if the operation is not in a group.
        package internal(set) var group: Node.ID?

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

    /// A dependency between two operations.
    package struct Edge: Sendable, Hashable {
        /// The ID of the node whose operation must end before the downstream operation begins.
        package let upstream: Node.ID
        /// The ID of the node whose operation waits for the upstream operation.
        package let downstream: Node.ID

        package init(upstream: Node.ID, downstream: Node.ID) {
            self.upstream = upstream
            self.downstream = downstream
        }
    }

    /// The name of the queue.
    package let queue: String
    /// The nodes of the graph, beginning with the operations in the queue.
    package let nodes: [Node]
    /// The dependencies between the nodes.
    package let edges: [Edge]
    /// The number of entries that the graph omits because the queue has more entries than the graph's limit.
    package let omittedCount: Int

    package init(queue: String, nodes: [Node], edges: [Edge], omittedCount: Int = 0) {
        self.queue = queue
        self.nodes = nodes
        self.edges = edges
        self.omittedCount = omittedCount
    }
}

extension QueueGraph {
    /// Collects the nodes without a lock, so that concurrent changes may be missing.
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
        let (sum, overflows) = nodes.count.addingReportingOverflow(limit)
        let mostNodes = overflows ? .max : sum
        // Returns nil for an omitted entry of the queue, and for an operation outside the queue beyond the limit.
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
            // The groups that contain the operation, at each level.
            var inner = entry.operation as? ManagedOperation
            while let child = inner, let own = number(of: child), nodes[own].group == nil,
                let group = child.groupOfChild
            {
                nodes[own].group = number(of: group)
                inner = group
            }
            // The children that are in no queue yet or do not need one.
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
    /// Returns a graph of the operations and closures in the queue, their dependencies and their groups.
    ///
    /// If the queue changes during the call, the graph might not contain the latest changes.
    ///
    /// - Parameter limit: The maximum number of operations and closures of the queue in the graph, and also the maximum
    ///   number of operations outside the queue. The default is 200, because larger graphs are hard to read.
    public func graph(limit: Int = 200) -> QueueGraph { QueueGraph(snapshot, limit: limit) }
}

// The graph in the languages of two drawing programs.
extension QueueGraph {
    /// The graph in Graphviz's DOT language.
    ///
    /// To convert the text to an image, use the command `dot -Tsvg`.
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

    /// The graph in the Mermaid language, which GitHub and other tools render in Markdown.
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

    /// Returns a quoted string, in which only quotation marks and backslashes need to be escaped.
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

    /// Returns the text with numeric entities for all characters that have a meaning in Mermaid, Markdown or HTML.
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

    fileprivate var style: String { state.map { "\($0)" } ?? (hasEnded ? "ended" : "outside") }
    fileprivate var colour: String { Self.colours[style] ?? "#ffffff" }
    fileprivate var standing: String {
        let place = state.map { "\($0)" } ?? (hasEnded ? "ended" : group == nil ? "not in this queue" : "in its group")
        return waitReason.map { "\(place), \($0)" } ?? place
    }
}

extension Unicode.Scalar {
    fileprivate var isControl: Bool { properties.generalCategory == .control }
}

/// The chain of dependent operations with the longest total execution time.
///
/// Regardless of the number of slots, running all operations takes at least as long as this chain.
package struct CriticalPath: Sendable, Equatable {
    /// The IDs of the operations in the chain, from the first to the last.
    package let runs: [QueueRun.ID]
    /// The total execution time of the chain.
    package let duration: Duration
    /// The additional time that each operation could take without making the longest chain longer.
    package let slack: [QueueRun.ID: Duration]
}

extension QueueRecord {
    /// The chain of dependent operations with the longest total execution time, and the ``CriticalPath/slack`` of all
    /// operations.
    ///
    /// The time for which an operation waits for a slot does not count, because this time depends on the width of the
    /// queue.
    package var criticalPath: CriticalPath {
        let order = runsInOrder
        let times = Dictionary(uniqueKeysWithValues: runs.map { ($0.id, $0.executing ?? .zero) })
        // The lengths of the longest chains that end with each operation, and that begin with it.
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

    /// The runs in an order in which each run comes after its dependencies.
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
