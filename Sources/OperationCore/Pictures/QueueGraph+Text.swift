// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

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
