// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A namespace for functions that measure text in terminal columns and fit it into a width.
public enum DisplayText {
    /// Returns the number of columns that a text occupies.
    ///
    /// Like most terminals, the function counts Unicode scalars. A wide scalar or an emoji occupies two columns, and a
    /// combining scalar occupies none. For an emoji of several scalars, the result is the sum. A terminal that draws
    /// the emoji as one character leaves a gap, but no line becomes too long.
    public static func columns(of text: String) -> Int {
        // Most texts contain only ASCII characters and need no table.
        if text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) { return text.utf8.count }
        return text.reduce(0) { $0 + columns(of: $1) }
    }

    /// Returns the number of columns that a character occupies.
    static func columns(of character: Character) -> Int {
        var columns = 0
        var isEmoji = false
        for scalar in character.unicodeScalars {
            columns += width(of: scalar)
            if scalar.value == 0xFE0F { isEmoji = true }
        }
        // The variation selector for emoji makes a narrow character wide.
        return isEmoji ? max(columns, 2) : columns
    }

    private static func width(of scalar: Unicode.Scalar) -> Int {
        let value = scalar.value
        if value < 0x300 { return value < 0x20 || (0x7F..<0xA0).contains(value) || value == 0xAD ? 0 : 1 }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format, .control, .lineSeparator, .paragraphSeparator: return 0
        default: break
        }
        // The middle and final parts of Korean syllables combine with the first part.
        if (0x1160...0x11FF).contains(value) { return 0 }
        return scalar.properties.isEmojiPresentation || WideScalars.contains(value) ? 2 : 1
    }

    /// Returns the text without characters that move the cursor or change the direction of writing.
    ///
    /// Names come from servers and command lines, and a terminal would execute the control sequences in them.
    public static func cleaned(_ text: String) -> String {
        func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse: false
            // Of the invisible characters, only the joiner that emoji need is kept.
            case .format: scalar.value == 0x200D
            default: true
            }
        }
        guard !text.unicodeScalars.allSatisfy(isHarmless) else { return text }
        return String(String.UnicodeScalarView(text.unicodeScalars.map { isHarmless($0) ? $0 : "?" }))
    }

    /// Returns the text in at most `limit` columns, without its middle if the text is too long.
    ///
    /// The beginning and the end of a name are more useful than its middle.
    public static func shortened(_ text: String, to limit: Int, ellipsis: String = "…") -> String {
        guard columns(of: text) > limit else { return text }
        let room = limit - columns(of: ellipsis)
        guard room > 0 else { return prefix(of: text, columns: limit) }
        let tail = String(prefix(of: String(text.reversed()), columns: room / 2).reversed())
        return prefix(of: text, columns: room - columns(of: tail)) + ellipsis + tail
    }

    /// Returns the text in at most `limit` columns, without its end if the text is too long.
    static func cut(_ text: String, to limit: Int, ellipsis: String) -> String {
        guard columns(of: text) > limit else { return text }
        let room = limit - columns(of: ellipsis)
        return room > 0 ? prefix(of: text, columns: room) + ellipsis : prefix(of: text, columns: limit)
    }

    /// Returns the longest prefix of the text that fits into a number of columns.
    static func prefix(of text: String, columns limit: Int) -> String {
        var left = limit
        return String(
            text.prefix { character in
                left -= columns(of: character)
                return left >= 0
            })
    }

    /// Returns the text, followed by spaces up to a number of columns.
    static func padded(_ text: String, to width: Int) -> String {
        text + String(repeating: " ", count: max(width - columns(of: text), 0))
    }

    /// Returns the text, preceded by spaces up to a number of columns.
    static func aligned(_ text: String, to width: Int) -> String {
        String(repeating: " ", count: max(width - columns(of: text), 0)) + text
    }

    /// Returns the text in lines of at most `limit` columns, which break at spaces if possible.
    ///
    /// All lines after the first line begin with `indent` spaces.
    public static func wrapped(_ text: String, to limit: Int, indent: Int = 0) -> [String] {
        let limit = max(limit, 1)
        let indent = indent < limit / 2 ? indent : 0
        var lines: [String] = []
        for paragraph in text.split(separator: "\n", omittingEmptySubsequences: false) {
            var line = lines.isEmpty ? "" : String(repeating: " ", count: indent)
            var isBegun = false
            for word in paragraph.split(separator: " ", omittingEmptySubsequences: false) {
                var word = String(word)
                if isBegun, columns(of: line) + 1 + columns(of: word) > limit {
                    lines.append(line)
                    line = String(repeating: " ", count: indent)
                    isBegun = false
                }
                if isBegun { line += " " }
                while columns(of: line) + columns(of: word) > limit {
                    let piece = prefix(of: word, columns: limit - columns(of: line))
                    // A wide character does not fit even into an empty line.
                    guard !piece.isEmpty else { break }
                    lines.append(line + piece)
                    word = String(word.dropFirst(piece.count))
                    line = String(repeating: " ", count: indent)
                }
                line += word
                isBegun = true
            }
            lines.append(line)
        }
        return lines
    }
}

/// The scalars that occupy two columns, except emoji, which Swift can identify.
private enum WideScalars {
    private static let ranges: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF, 0x4E00...0x9FFF, 0xA000...0xA4CF,
        0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6,
        0x16FE0...0x18AFF, 0x1AFF0...0x1B2FF, 0x1F200...0x1F2FF, 0x20000...0x3FFFD,
    ]

    static func contains(_ value: UInt32) -> Bool {
        value >= 0x1100 && ranges.contains { $0.contains(value) }
    }
}
