// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// How many columns text takes up in a terminal, and how it is made to fit.
public enum DisplayText {
    /// How many columns a text takes up.
    ///
    /// Counted as most terminals do: by scalars, wide ones and those of emoji as two, combining ones as none. So an emoji
    /// that is joined of several counts for each of them; where a terminal draws it as one, a gap is left, and no line
    /// ever runs over.
    public static func columns(of text: String) -> Int {
        // What most texts are made of needs no table.
        if text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) { return text.utf8.count }
        return text.reduce(0) { $0 + columns(of: $1) }
    }

    /// How many columns a character takes up.
    static func columns(of character: Character) -> Int {
        var columns = 0
        var isEmoji = false
        for scalar in character.unicodeScalars {
            columns += width(of: scalar)
            if scalar.value == 0xFE0F { isEmoji = true }
        }
        // The sign that asks for an emoji makes a narrow one wide.
        return isEmoji ? max(columns, 2) : columns
    }

    private static func width(of scalar: Unicode.Scalar) -> Int {
        let value = scalar.value
        if value < 0x300 { return value < 0x20 || (0x7F..<0xA0).contains(value) || value == 0xAD ? 0 : 1 }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format, .control, .lineSeparator, .paragraphSeparator: return 0
        default: break
        }
        // The middle and last parts of Korean syllables join the first.
        if (0x1160...0x11FF).contains(value) { return 0 }
        return scalar.properties.isEmojiPresentation || WideScalars.contains(value) ? 2 : 1
    }

    /// The text without what would move the cursor or turn the direction of writing.
    ///
    /// Names come from servers and command lines. A terminal obeys what is in them.
    public static func cleaned(_ text: String) -> String {
        func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse: false
            // Of signs that are not seen, those that make up emoji stay.
            case .format: scalar.value == 0x200D
            default: true
            }
        }
        guard !text.unicodeScalars.allSatisfy(isHarmless) else { return text }
        return String(String.UnicodeScalarView(text.unicodeScalars.map { isHarmless($0) ? $0 : "?" }))
    }

    /// The text in at most so many columns: what is too much goes from its middle, for beginnings and endings tell more.
    public static func shortened(_ text: String, to limit: Int, ellipsis: String = "…") -> String {
        guard columns(of: text) > limit else { return text }
        let room = limit - columns(of: ellipsis)
        guard room > 0 else { return prefix(of: text, columns: limit) }
        let tail = String(prefix(of: String(text.reversed()), columns: room / 2).reversed())
        return prefix(of: text, columns: room - columns(of: tail)) + ellipsis + tail
    }

    /// The text in at most so many columns: what is too much goes from its end, as suits sentences.
    static func cut(_ text: String, to limit: Int, ellipsis: String) -> String {
        guard columns(of: text) > limit else { return text }
        let room = limit - columns(of: ellipsis)
        return room > 0 ? prefix(of: text, columns: room) + ellipsis : prefix(of: text, columns: limit)
    }

    /// The beginning of a text that fits into so many columns.
    static func prefix(of text: String, columns limit: Int) -> String {
        var left = limit
        return String(
            text.prefix { character in
                left -= columns(of: character)
                return left >= 0
            })
    }

    /// The text with blanks behind it, up to so many columns.
    static func padded(_ text: String, to width: Int) -> String {
        text + String(repeating: " ", count: max(width - columns(of: text), 0))
    }

    /// The text with blanks before it, up to so many columns.
    static func aligned(_ text: String, to width: Int) -> String {
        String(repeating: " ", count: max(width - columns(of: text), 0)) + text
    }

    /// The text in lines of at most so many columns, broken at blanks where there are any.
    ///
    /// All lines but the first begin with `indent` blanks.
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
                    // A wide character for which not even an empty line has room.
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

/// The scalars that take up two columns, but for emoji, which Swift knows.
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
