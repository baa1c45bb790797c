// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import Testing

@testable import TerminalDisplay

@Suite("Layout of the progress board")
struct BoardTests {
    private func time(_ seconds: Double) -> OperationInstant { OperationInstant(offset: .seconds(seconds)) }

    private func board(_ count: Int, running: Int, name: String = "file", total: Int64? = 1_000_000) -> DisplayBoard {
        var board = DisplayBoard()
        for index in 0..<count {
            let state: ProgressRow.State = index < running ? .running : .waiting
            let id = board.add(ProgressRow("\(name)\(index)", state: state, total: total), at: time(0))
            if state == .running { board.change(id, at: time(1)) { $0.completed = 450_000 } }
        }
        return board
    }

    private func live(_ board: DisplayBoard, _ columns: Int, _ rows: Int = 24, at seconds: Double = 1) -> [String] {
        BoardLayout(style: DisplayStyle(), size: TerminalSize(columns: columns, rows: rows))
            .live(board, at: time(seconds)).map(\.text)
    }

    @Test func `impossible totals do not crash the board`() {
        var board = DisplayBoard()
        let totals = [Int64.max, .max, .max - 1, .min, -1, 1_000]
        let ids = totals.map { board.add(ProgressRow("file", state: .running, total: $0), at: time(0)) }
        for (index, id) in ids.enumerated() {
            board.change(id, at: time(1)) { $0.completed = [500, .max, .min, 7, 0, 500][index] }
            board.change(id, at: time(2)) { ($0.completed, $0.inherited) = (500, [0, .max, .min][index % 3]) }
            for columns in [20, 80, 200] { _ = live(board, columns, at: 2) }
        }
        for id in ids.dropLast() { board.change(id, at: time(3)) { $0.state = .failed } }
        #expect(QuantityText.time(.seconds(Int64.max)) == "∞")
        // The remaining time is correct again when these rows have ended.
        var small = DisplayBoard()
        let huge = small.add(ProgressRow("huge", state: .running, total: .max), at: time(0))
        let other = small.add(ProgressRow("other", state: .running, total: .max), at: time(0))
        let row = small.add(ProgressRow("row", state: .running, total: 1_000), at: time(0))
        for id in [huge, other] { small.change(id, at: time(1)) { $0.state = .failed } }
        small.change(row, at: time(1)) { $0.completed = 500 }
        #expect(small.timeLeft(at: time(1)) == .seconds(1))
    }

    @Test func `a row is laid out for 80 columns`() {
        let lines = live(board(1, running: 1, name: "a-rather-long-name-of-a-file-with-a-number-"), 80)
        #expect(lines == ["a-rather-lon…h-a-number-0  ━━━━━━━──────────   45%   450 kB   450 kB/s     0:02"])
    }

    @Test func `a row is laid out for 40 columns`() {
        let lines = live(board(1, running: 1), 40)
        #expect(lines == ["file0  ━━━━━━─────────   45%   450 kB/s"])
    }

    @Test func `no line is wider than the terminal, and there are no more lines than fit`() {
        let names = ["f", "a-name-that-is-much-longer-than-any-terminal-is-wide-", "日本語の名前", "👩‍👩‍👧"]
        for name in names {
            for total in [nil, 0, 1_000_000] as [Int64?] {
                for columns in 1...130 {
                    for rows in [1, 2, 3, 4, 10, 24] {
                        let lines = live(board(12, running: 6, name: name, total: total), columns, rows)
                        #expect(lines.count <= max(rows - 1, 1))
                        #expect(lines.allSatisfy { DisplayText.columns(of: $0) <= max(columns - 1, 1) })
                    }
                }
            }
        }
    }

    @Test func `rows that do not fit are counted`() {
        let lines = live(board(1_000, running: 50), 80, 10)
        #expect(lines.count == 9)
        #expect(lines[7] == "  and 993 more")
        #expect(lines[8].hasPrefix("0 of 1000 done"))
        #expect(live(board(3, running: 3), 80, 10).count == 4)
        #expect(live(board(9, running: 9), 80, 10).dropLast().last == "  and 2 more")
    }

    @Test func `a waiting row names its reason`() {
        var board = DisplayBoard()
        let id = board.add(ProgressRow("file", state: .paused, note: "again in 2 s"), at: time(0))
        #expect(live(board, 80) == ["file  again in 2 s"])
        #expect(live(board, 12) == ["file  agai…"])
        board.change(id, at: time(1)) { $0.state = .running }
        #expect(live(board, 80)[0].contains("─"))
    }

    @Test func `a row that ended becomes a line, once`() {
        var board = board(1, running: 1)
        board.change(1, at: time(2)) { ($0.state, $0.completed) = (.done, 1_000_000) }
        let layout = BoardLayout(style: DisplayStyle(), size: TerminalSize(columns: 80, rows: 24))
        #expect(board.takeNotes().flatMap { layout.lines($0) }.map(\.text) == ["✓ file0  1.00 MB in 2.0 s, 500 kB/s"])
        #expect(board.takeNotes().isEmpty)
        #expect(live(board, 80).isEmpty)
        board.change(1, at: time(3)) { $0.state = .failed }
        #expect(board.takeNotes().isEmpty)
    }

    @Test func `inherited bytes do not count toward the rate`() {
        var board = DisplayBoard()
        let id = board.add(ProgressRow("file", state: .running, total: 2_000_000), at: time(0))
        board.change(id, at: time(0)) { ($0.completed, $0.inherited) = (1_000_000, 1_000_000) }
        board.change(id, at: time(1)) { $0.completed = 1_100_000 }
        #expect(board.active(1, at: time(1)).first?.rate == 100_000)
        #expect(board.receivedBytes == 100_000)
        #expect(board.timeLeft(at: time(1)) == .seconds(9))
    }

    @Test func `the rate falls while no bytes arrive`() {
        var meter = RateMeter()
        meter.note(0, at: time(0))
        meter.note(1_000, at: time(1))
        #expect(meter.rate(at: time(1)) == 1_000)
        #expect(meter.rate(at: time(10)) == 100)
        #expect(RateMeter().rate(at: time(1)) == nil)
        for second in 2..<100 { meter.note(Int64(second) * 500, at: time(Double(second))) }
        #expect(meter.rate(at: time(99)) == 500)
        // The file has changed and is downloaded again.
        meter.note(0, at: time(100))
        #expect(meter.rate(at: time(101)) == 0)
    }

    @Test func `a failure message is wrapped at the width`() {
        var board = board(1, running: 1)
        board.change(1, at: time(2)) { ($0.state, $0.note) = (.failed, "The server answered with status 404.") }
        let layout = BoardLayout(style: DisplayStyle(), size: TerminalSize(columns: 24, rows: 24))
        let notes = board.takeNotes()
        #expect(
            notes.flatMap { layout.lines($0) }.map(\.text) == [
                "✗ file0: The server", "  answered with status", "  404.",
            ])
        let plain = BoardLayout(style: .plain, size: TerminalSize(columns: 24, rows: 24))
        #expect(
            notes.flatMap { plain.lines($0) }.map(\.text) == ["✗ file0: The server answered with status 404."])
    }

    @Test func `the style depends on the environment`() {
        let terminal = ["TERM": "xterm-256color", "LANG": "de_DE.UTF-8"]
        #expect(DisplayStyle.detected(isTerminal: true, environment: terminal) == DisplayStyle())
        #expect(DisplayStyle.detected(isTerminal: false, environment: terminal) == .plain)
        let ascii = DisplayStyle.detected(isTerminal: true, environment: ["TERM": "vt100", "LC_ALL": "C"])
        #expect(!ascii.usesUnicode && ascii.isLive)
        #expect(!DisplayStyle.detected(isTerminal: true, environment: ["TERM": "dumb"]).isLive)
        #expect(!DisplayStyle.detected(isTerminal: true, environment: [:]).isLive)
        let colourless = terminal.merging(["NO_COLOR": "1"]) { $1 }
        let style = DisplayStyle.detected(isTerminal: true, environment: colourless)
        #expect(style.isLive && !style.usesColor)
    }
}
