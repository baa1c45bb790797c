// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A terminal that understands what the display writes, and no more: anything else is written down as wrong.
package struct ScreenModel: Sendable {
    private var lines: [[Character]] = [[]]
    private var row = 0
    private var column = 0
    package private(set) var isCursorHidden = false
    /// Sequences that nobody should have written, and lines that were too long.
    package private(set) var complaints: [String] = []
    /// How often something was written.
    package private(set) var frames = 0
    /// How wide the terminal is.
    package var columns: Int

    package init(columns: Int) {
        self.columns = columns
    }

    /// What is seen, without blanks at the ends.
    package var text: [String] {
        var lines = lines.map { String(String($0).reversed().drop { $0 == " " }.reversed()) }
        while lines.last == "" { lines.removeLast() }
        return lines
    }

    package mutating func write(_ text: String) {
        frames += 1
        var rest = Array(text.unicodeScalars)[...]
        while let scalar = rest.popFirst() {
            switch scalar {
            case "\r": column = 0
            case "\n":
                row += 1
                if row == lines.count { lines.append([]) }
            case "\u{1B}": escape(&rest)
            default: put(Character(scalar))
            }
        }
    }

    private mutating func put(_ character: Character) {
        guard character.unicodeScalars.first?.properties.generalCategory != .nonspacingMark else { return }
        if column >= columns - 1 { complaints.append("line \(row) is too long: \(String(lines[row]))") }
        while lines[row].count <= column { lines[row].append(" ") }
        lines[row][column] = character
        column += 1
    }

    private mutating func escape(_ rest: inout ArraySlice<Unicode.Scalar>) {
        guard rest.popFirst() == "[" else { return complaints.append("an escape that is no sequence") }
        let parameters = String(String.UnicodeScalarView(rest.prefix { !("@"..."~").contains($0) }))
        rest = rest.dropFirst(parameters.unicodeScalars.count)
        let command = rest.popFirst() ?? "?"
        switch (command, parameters) {
        case ("A", let count):
            row -= Int(count) ?? 1
            if row < 0 { complaints.append("above the first line") }
            row = max(row, 0)
        case ("K", ""): lines[row] = Array(lines[row].prefix(column))
        case ("J", ""):
            lines[row] = Array(lines[row].prefix(column))
            lines = Array(lines[...row])
        case ("l", "?25"): isCursorHidden = true
        case ("h", "?25"): isCursorHidden = false
        case ("h", "?2026"), ("l", "?2026"): break
        case ("m", let number) where ["0", "2", "31", "32", "36"].contains(number): break
        default: complaints.append("ESC[\(parameters)\(command)")
        }
    }
}
