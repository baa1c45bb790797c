// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore

/// A layout that creates the lines of a board for a terminal of a given size, and stores no state.
struct BoardLayout: Sendable {
    let style: DisplayStyle
    let size: TerminalSize

    /// The last column stays empty, because terminals behave differently after a character in the last column.
    private var width: Int { max(size.columns - 1, 1) }

    // Active rows.

    /// Returns the lines of the active rows, which leave at least one line of the terminal for the cursor.
    func live(_ board: DisplayBoard, at now: OperationInstant) -> [DisplayLine] {
        guard !board.isIdle else { return [] }
        let room = max(size.rows - 1, 1)
        let hasSummary = board.count > 1 && room > 1
        var shown = room - (hasSummary ? 1 : 0)
        var more = board.activeCount - shown
        if (more > 0 || board.waitingCount > 0) && shown > 1 {
            shown -= 1
            more = board.activeCount - shown
        }
        let rows = board.active(shown, at: now)
        let names = nameWidth(rows.map { DisplayText.columns(of: DisplayText.cleaned($0.row.name)) }.max() ?? 0)
        var lines = rows.map { line($0, nameWidth: names, at: now) }
        let hidden = max(more, 0) + board.waitingCount
        if hidden > 0, lines.count + (hasSummary ? 1 : 0) < room {
            lines.append(fitted("  and \(hidden) more", .faint))
        }
        if hasSummary { lines.append(summary(board, at: now)) }
        return lines
    }

    /// The columns for which the terminal has enough room.
    private struct Columns {
        var hasBar = false
        var hasPercent = false
        var hasAmount = false
        var hasRate = false
        var hasTime = false

        init(_ width: Int) {
            hasPercent = width >= 12
            hasBar = width >= 24
            hasRate = width >= 34
            hasTime = width >= 50
            hasAmount = width >= 66
        }

        /// The total width of the columns, including two spaces before each column.
        var width: Int {
            (hasPercent ? 6 : 0) + (hasAmount ? 9 : 0) + (hasRate ? 11 : 0) + (hasTime ? 9 : 0) + (hasBar ? 2 : 0)
        }
    }

    private func nameWidth(_ longest: Int) -> Int {
        let columns = Columns(width)
        let room = max(width - columns.width, 1)
        guard columns.hasBar else { return min(longest, room) }
        // Names get three fifths of the width, because bars are readable at any length.
        return min(longest, max(room * 3 / 5, 8), max(room - 4, 1))
    }

    private func line(_ active: DisplayBoard.Active, nameWidth: Int, at now: OperationInstant) -> DisplayLine {
        let row = active.row
        let columns = Columns(width)
        let cleaned = DisplayText.cleaned(row.name)
        let name = DisplayText.shortened(cleaned, to: nameWidth, ellipsis: style.ellipsis)
        var line = DisplayLine(DisplayText.padded(name, to: nameWidth))
        if row.state == .paused || row.state == .waiting {
            let room = width - nameWidth - 2
            let note = DisplayText.cleaned(row.note.isEmpty ? "waiting" : row.note)
            if room > 0 {
                line.add("  " + DisplayText.cut(note, to: room, ellipsis: style.ellipsis), .faint)
            }
            return line
        }
        if columns.hasBar {
            line.add("  ")
            // The limit keeps bars from becoming too long.
            addBar(row, min(max(width - nameWidth - columns.width, 1), 40), at: now, to: &line)
        }
        if columns.hasPercent {
            let text = row.total.map { QuantityText.percent(row.completed, of: $0) } ?? ""
            line.add("  " + DisplayText.aligned(text, to: 4))
        }
        if columns.hasAmount {
            let text = row.unit == .bytes ? QuantityText.bytes(row.completed) : "\(row.completed)"
            line.add("  " + DisplayText.aligned(text, to: 7))
        }
        if columns.hasRate {
            let text = row.unit == .bytes ? active.rate.map(QuantityText.rate) ?? "" : ""
            line.add("  " + DisplayText.aligned(text, to: 9))
        }
        if columns.hasTime {
            let left = row.total == nil ? nil : DisplayBoard.timeLeft(row.missing, active.rate)
            line.add("  " + DisplayText.aligned(left.map(QuantityText.time) ?? "", to: 7))
        }
        return line
    }

    private func addBar(_ row: ProgressRow, _ length: Int, at now: OperationInstant, to line: inout DisplayLine) {
        func run(_ sign: Character, _ count: Int) -> String { String(repeating: sign, count: max(count, 0)) }
        guard let total = row.total else {
            // The total is unknown, so a part of the bar moves back and forth.
            let piece = max(length / 4, 1)
            let way = max(length - piece, 1)
            let step = Int(now.offset.inSeconds * 8) % (2 * way)
            let start = min(step <= way ? step : 2 * way - step, length - piece)
            line.add(run(style.trackSign, start), .track)
            line.add(run(style.barSign, piece), .bar)
            line.add(run(style.trackSign, length - piece - start), .track)
            return
        }
        let share = total > 0 ? min(max(Double(row.completed) / Double(total), 0), 1) : 1
        let filled = Int(Double(length) * share)
        line.add(run(style.barSign, filled), .bar)
        line.add(run(style.trackSign, length - filled), .track)
    }

    // Summary.

    /// Returns one line about all rows: the number of ended rows, the received bytes, the rate and the remaining time.
    func summary(_ board: DisplayBoard, at now: OperationInstant) -> DisplayLine {
        var line = DisplayLine("\(board.endedCount) of \(board.count) done")
        if board.failedCount > 0 { add("\(board.failedCount) failed", .bad, to: &line) }
        if board.receivedBytes > 0 { add(QuantityText.bytes(board.receivedBytes), to: &line) }
        if let rate = board.rate(at: now), board.receivedBytes > 0 { add(QuantityText.rate(rate), to: &line) }
        if let left = board.timeLeft(at: now), left > .zero { add(QuantityText.time(left) + " left", to: &line) }
        return line.columns <= width ? line : fitted(line.text, .plain)
    }

    /// Adds a piece of text if there is enough room.
    private func add(_ text: String, _ role: DisplayLine.Role = .plain, to line: inout DisplayLine) {
        guard line.columns + 2 + DisplayText.columns(of: text) <= width else { return }
        line.add("  ")
        line.add(text, role)
    }

    private func fitted(_ text: String, _ role: DisplayLine.Role) -> DisplayLine {
        DisplayLine(DisplayText.shortened(text, to: width, ellipsis: style.ellipsis), role)
    }

    // Permanent lines.

    /// Returns the lines of a permanent message, which are wrapped only in a terminal.
    func lines(_ note: DisplayBoard.Note) -> [DisplayLine] {
        switch note {
        case .text(let text, let role):
            return broken(text, indent: text.prefix { $0 == " " }.count).map { DisplayLine($0, role) }
        case .ended(let row, let elapsed) where row.state == .failed: return failed(row, elapsed)
        case .ended(let row, let elapsed): return [done(row, elapsed)]
        }
    }

    private func done(_ row: ProgressRow, _ elapsed: Duration) -> DisplayLine {
        var line = DisplayLine(style.goodSign, .good)
        line.add(" ")
        let name = DisplayText.cleaned(row.name)
        var ends: [String] = []
        if row.unit == .bytes {
            let bytes = QuantityText.bytes(row.completed)
            let passed = "\(bytes) in \(QuantityText.elapsed(elapsed))"
            let seconds = elapsed.inSeconds
            let fresh = row.fresh
            if seconds >= 0.5, fresh > 0 { ends.append("\(passed), \(QuantityText.rate(Double(fresh) / seconds))") }
            ends += [passed, bytes]
        }
        if !row.note.isEmpty { ends = ends.map { "\($0), \(row.note)" } + [row.note] + ends }
        guard style.isLive else {
            line.add(ends.first.map { "\(name)  \($0)" } ?? name)
            return line
        }
        let room = width - line.columns
        // The name gets the room that the longest possible ending leaves, but at least a few columns.
        let end = ends.first { min(DisplayText.columns(of: name), 16) + 2 + DisplayText.columns(of: $0) <= room }
        let nameRoom = room - (end.map { DisplayText.columns(of: $0) + 2 } ?? 0)
        line.add(DisplayText.shortened(name, to: nameRoom, ellipsis: style.ellipsis))
        if let end { line.add("  " + end, .faint) }
        return line
    }

    private func failed(_ row: ProgressRow, _ elapsed: Duration) -> [DisplayLine] {
        let name = DisplayText.cleaned(row.name)
        let text = row.note.isEmpty ? name : "\(name): \(row.note)"
        var lines = broken(style.badSign + " " + text, indent: 2).map { DisplayLine($0) }
        // The sign has its own color.
        if let first = lines.first?.text, first.hasPrefix(style.badSign) {
            var line = DisplayLine(style.badSign, .bad)
            line.add(String(first.dropFirst(style.badSign.count)))
            lines[0] = line
        }
        return lines
    }

    private func broken(_ text: String, indent: Int = 0) -> [String] {
        let paragraphs = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
            .map(DisplayText.cleaned)
        guard style.isLive else { return paragraphs }
        return DisplayText.wrapped(paragraphs.joined(separator: "\n"), to: width, indent: indent)
    }
}
