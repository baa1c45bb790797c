// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A terminal that supports only what the display writes, and records anything else as a fault.
package struct ScreenModel: Sendable {
    private var lines: [[Character]] = [[]]
    private var row = 0
    private var column = 0
    package private(set) var isCursorHidden = false
    /// Unexpected sequences, and lines that were too long.
    package private(set) var complaints: [String] = []
    /// The number of writes.
    package private(set) var frames = 0
    /// The width of the terminal.
    package var columns: Int

    package init(columns: Int) {
        self.columns = columns
    }

    /// The visible text, without spaces at the ends of lines.
    package var text: [String] {
        var lines = lines.map { String(String($0.filter { $0 != Self.half }).reversed().drop { $0 == " " }.reversed()) }
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
        let width = Self.width(character)
        guard width > 0 else { return }
        if column + width > columns - 1 { complaints.append("line \(row) is too long: \(String(lines[row]))") }
        while lines[row].count < column + width { lines[row].append(" ") }
        lines[row][column] = character
        // The second half of a wide character is not a separate character.
        if width == 2 { lines[row][column + 1] = Self.half }
        column += width
    }

    private static let half: Character = "\u{0}"

    /// The width in a terminal, according to a table that is independent of that of the display.
    private static func width(_ character: Character) -> Int {
        guard let scalar = character.unicodeScalars.first else { return 0 }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format: return 0
        default: break
        }
        let wide: [ClosedRange<UInt32>] = [
            0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60,
            0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F900...0x1F9FF, 0x20000...0x3FFFD,
        ]
        return wide.contains { $0.contains(scalar.value) } ? 2 : 1
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
