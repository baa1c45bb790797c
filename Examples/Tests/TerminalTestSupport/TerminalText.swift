// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What a program wrote to a terminal, taken apart.
public struct TerminalText: Sendable {
    /// The lines that were written, each as far as the next carriage return or line feed, without escape sequences.
    public let lines: [String]
    /// The escape sequences among them.
    public let sequences: [String]

    /// Takes apart what was written.
    public init(_ text: String) {
        var (lines, sequences) = ([""], [String]())
        var rest = text.unicodeScalars[...]
        while let scalar = rest.popFirst() {
            switch scalar {
            case "\r", "\n": lines.append("")
            case "\u{1B}":
                guard rest.first == "[" else {
                    sequences.append("\u{1B}")
                    continue
                }
                let parameters = rest.dropFirst().prefix { !("@"..."~").contains($0) }
                rest = rest.dropFirst(1 + parameters.count)
                let command = rest.popFirst().map(String.init) ?? ""
                sequences.append("\u{1B}[\(String(String.UnicodeScalarView(parameters)))\(command)")
                // The cursor is elsewhere.
                if "ABCDGHJK".contains(command) { lines.append("") }
            default: lines[lines.count - 1].unicodeScalars.append(scalar)
            }
        }
        self.lines = lines.filter { !$0.isEmpty }
        self.sequences = sequences
    }

    /// The lines that are longer than that.
    public func lines(longerThan columns: Int) -> [String] { lines.filter { $0.count > columns } }
}
