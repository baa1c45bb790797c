// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Makes of lines what is written to a terminal, so that they take the place of those that it shows.
///
/// A state machine without effects: it remembers what is on the screen. Only these are written: lines, `ESC[nA` (up),
/// `ESC[K` and `ESC[J` (clear to the end of the line, of the screen), `ESC[?25l` and `h` (hide and show the cursor),
/// `ESC[?2026h` and `l` (show all between them at once, where a terminal knows it), and colours (`ESC[nm`).
struct FrameEncoder: Sendable {
    private let style: DisplayStyle
    /// The lines on the screen, the last of which stands right above the cursor.
    private var shown: [DisplayLine] = []
    private var width = 0
    private(set) var hidesCursor = false

    init(_ style: DisplayStyle) {
        self.style = style
    }

    /// What shows `permanent` for good and `live` beneath it, until the next frame; empty if nothing changes.
    mutating func frame(permanent: [DisplayLine], live: [DisplayLine], size: TerminalSize) -> String {
        guard style.isLive else {
            return permanent.map { $0.text + "\n" }.joined()
        }
        let isResized = width != size.columns && !shown.isEmpty
        guard !permanent.isEmpty || live != shown || isResized else { return "" }
        var text = "\u{1B}[?2026h"
        if !live.isEmpty, !hidesCursor {
            text += "\u{1B}[?25l"
            hidesCursor = true
        }
        let rows = rowsOnScreen(size)
        if rows > 0 { text += "\r\u{1B}[\(rows)A" }
        // Lines that were broken by a terminal that became narrower are not where they were.
        if isResized { text += "\u{1B}[J" }
        let repeats = permanent.isEmpty && !isResized
        for line in permanent { text += line.encoded(usesColor: style.usesColor) + "\u{1B}[K\r\n" }
        for (index, line) in live.enumerated() {
            let isThere = repeats && shown.indices.contains(index) && shown[index] == line
            text += isThere ? "\r\n" : line.encoded(usesColor: style.usesColor) + "\u{1B}[K\r\n"
        }
        text += "\u{1B}[J\u{1B}[?2026l"
        shown = live
        width = size.columns
        return text
    }

    /// How many rows the lines on the screen take up, where a terminal breaks those that are too long for it now.
    private func rowsOnScreen(_ size: TerminalSize) -> Int {
        guard size.columns < width else { return shown.count }
        let rows = shown.reduce(0) { $0 + max(($1.columns + size.columns - 1) / size.columns, 1) }
        return min(rows, size.rows - 1)
    }

    /// What shows the cursor again, if it is hidden.
    mutating func showCursor() -> String {
        guard hidesCursor else { return "" }
        hidesCursor = false
        return "\u{1B}[?25h"
    }

    /// The screen is somebody else's meanwhile, as while the program is stopped: the next frame stands beneath what is there.
    mutating func forget() { shown = [] }
}
