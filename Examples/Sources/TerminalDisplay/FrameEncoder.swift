// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// An encoder that turns lines into the text that replaces the current lines of a terminal.
///
/// The encoder is a state machine without side effects, which stores the lines on the screen. Apart from lines, the
/// text contains only these sequences:
///
/// - `ESC[nA` moves the cursor up.
/// - `ESC[K` and `ESC[J` clear to the end of the line or of the screen.
/// - `ESC[?25l` and `ESC[?25h` hide and show the cursor.
/// - `ESC[?2026h` and `ESC[?2026l` begin and end an update that a terminal shows as a whole, if it supports them.
/// - `ESC[nm` sets the color.
struct FrameEncoder: Sendable {
    private let style: DisplayStyle
    /// The lines on the screen, of which the last line is directly above the cursor.
    private var shown: [DisplayLine] = []
    private var width = 0
    private(set) var hidesCursor = false

    init(_ style: DisplayStyle) {
        self.style = style
    }

    /// Returns the text that prints the permanent lines and replaces the live lines below them, or an empty text if
    /// nothing changes.
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
        // If a terminal becomes narrower, it wraps lines, and the following lines move down.
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

    /// Returns the number of rows that the lines on the screen occupy, including wrapped lines.
    private func rowsOnScreen(_ size: TerminalSize) -> Int {
        guard size.columns < width else { return shown.count }
        let rows = shown.reduce(0) { $0 + max(($1.columns + size.columns - 1) / size.columns, 1) }
        return min(rows, size.rows - 1)
    }

    /// Returns the text that shows the cursor again, or an empty text if the cursor is visible.
    mutating func showCursor() -> String {
        guard hidesCursor else { return "" }
        hidesCursor = false
        return "\u{1B}[?25h"
    }

    /// Forgets the lines on the screen, for example while the program is suspended, so that the next frame begins below
    /// them.
    mutating func forget() { shown = [] }
}
