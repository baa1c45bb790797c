// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import OperationCore
import OperationTestKit
import ScreenModel
import Synchronization
import Testing

@testable import TerminalDisplay

/// Writes the output to a model of a screen.
final class ScreenOutput: DisplayOutput {
    private let screen: Mutex<ScreenModel>
    private let rows: Int

    init(columns: Int, rows: Int = 24) {
        screen = Mutex(ScreenModel(columns: columns))
        self.rows = rows
    }

    var size: TerminalSize { screen.withLock { TerminalSize(columns: $0.columns, rows: rows) } }
    var text: [String] { screen.withLock { $0.text } }
    var frames: Int { screen.withLock { $0.frames } }
    var complaints: [String] { screen.withLock { $0.complaints } }
    var isCursorHidden: Bool { screen.withLock { $0.isCursorHidden } }

    func write(_ text: String) { screen.withLock { $0.write(text) } }
    func resize(to columns: Int) { screen.withLock { $0.columns = columns } }
}

/// An output that accepts nothing until a gate opens.
private struct BlockedOutput: DisplayOutput {
    let texts = EventRecorder<String>()
    let isBlocked = Gate()
    let gate = Gate()

    var size: TerminalSize { TerminalSize(columns: 80, rows: 24) }

    func write(_ text: String) {
        texts.record(text)
        isBlocked.open()
        gate.wait()
    }
}

@Suite("Terminal display", .timeLimit(.minutes(1)))
struct TerminalDisplayTests {
    private let clock = ManualClock(start: OperationInstant(offset: .seconds(100)))

    private func display(_ output: ScreenOutput, style: DisplayStyle = DisplayStyle()) -> TerminalDisplay {
        TerminalDisplay(output: output, style: style, clock: clock)
    }

    private func pass(_ duration: Duration, _ display: TerminalDisplay) {
        clock.advance(by: duration)
        display.flush()
    }

    @Test(arguments: [40, 80]) func `rows are redrawn in place`(columns: Int) {
        let output = ScreenOutput(columns: columns)
        let display = display(output)
        let rows = (0..<3).map { display.add(ProgressRow("file-\($0).bin", state: .running, total: 1_000)) }
        for step in 1...10 {
            pass(.milliseconds(100), display)
            for row in rows { display.advance(row, to: Int64(step * 100)) }
        }
        pass(.seconds(1), display)
        #expect(output.text.count == 4)
        #expect(output.text.first?.hasPrefix("file-0.bin") == true)
        #expect(output.isCursorHidden)
        display.end(rows[1], .done)
        pass(.seconds(1), display)
        #expect(output.text.first?.hasPrefix("✓ file-1.bin") == true)
        #expect(output.text.count == 4)
        display.finish()
        #expect(output.text.count == 1)
        #expect(!output.isCursorHidden)
        #expect(output.complaints.isEmpty)
    }

    @Test func `frequent changes are drawn at about ten frames per second`() {
        let output = ScreenOutput(columns: 80)
        let display = display(output)
        let row = display.add(ProgressRow("file", state: .running, total: 1_000_000))
        display.flush()
        for step in 0..<1_000 {
            display.advance(row, to: Int64(step))
            pass(.milliseconds(1), display)
        }
        #expect((9...11).contains(output.frames))
        display.finish()
    }

    @Test func `without changes, few frames are drawn`() {
        let output = ScreenOutput(columns: 80)
        let display = display(output)
        let row = display.add(ProgressRow("file", state: .running, total: 1_000))
        display.flush()
        #expect(output.frames == 1)
        for _ in 0..<100 { pass(.milliseconds(100), display) }
        #expect(output.frames <= 11)
        #expect(clock.pendingCount == 1)
        display.end(row, .done)
        display.finish()
        #expect(clock.pendingCount == 0)
    }

    @Test func `the display adapts when the terminal becomes narrower or wider`() {
        let output = ScreenOutput(columns: 80)
        let display = display(output)
        for index in 0..<3 {
            display.add(ProgressRow("a-file-with-a-name-\(index)", state: .running, total: 1_000))
        }
        display.flush()
        for columns in [40, 20, 10, 120, 80] {
            output.resize(to: columns)
            pass(.seconds(1), display)
            #expect(output.text.last?.hasPrefix(columns == 10 ? "0 o" : "0 of 3") == true)
        }
        display.finish()
        #expect(output.text.isEmpty)
    }

    @Test func `messages appear above the rows`() {
        let output = ScreenOutput(columns: 40)
        let display = display(output)
        display.add(ProgressRow("file", state: .running, total: 1_000))
        display.flush()
        display.say("This sentence is longer than forty columns, so it is broken.")
        pass(.milliseconds(100), display)
        #expect(output.text.prefix(2) == ["This sentence is longer than forty", "columns, so it is broken."])
        #expect(output.text.last?.hasPrefix("file") == true)
        display.finish()
        display.say("Afterwards.")
        display.flush()
        #expect(output.text.last == "Afterwards.")
        #expect(output.complaints.isEmpty)
    }

    @Test func `in a pipe, only plain lines are written`() {
        let output = ScreenOutput(columns: 10_000)
        let display = display(output, style: .plain)
        let row = display.add(ProgressRow("file", state: .running, total: 1_000))
        display.advance(row, to: 500)
        pass(.seconds(2), display)
        #expect(output.text.isEmpty)
        display.advance(row, to: 1_000)
        display.end(row, .done)
        display.finish()
        #expect(output.text == ["✓ file  1.00 kB in 2.0 s, 500 B/s"])
        #expect(clock.pendingCount == 0)
    }

    @Test func `the display can be stopped and resumed`() {
        let output = ScreenOutput(columns: 80)
        let display = display(output)
        display.add(ProgressRow("file", state: .running, total: 1_000))
        display.flush()
        display.stop()
        display.flush()
        #expect(!output.isCursorHidden)
        let frames = output.frames
        display.say("Later.")
        pass(.seconds(1), display)
        #expect(output.frames == frames)
        display.goOn()
        display.flush()
        #expect(output.isCursorHidden)
        #expect(output.text.contains("Later."))
        display.showCursorAtOnce()
        #expect(!output.isCursorHidden)
        display.finish()
    }

    @Test func `a terminal that accepts nothing delays a stop only for a moment`() async {
        let (output, stopped) = (BlockedOutput(), Gate())
        let display = TerminalDisplay(output: output, style: .plain, clock: clock)
        display.say("A message.")
        await output.isBlocked.passage()
        DispatchQueue.global().async {
            display.stop()
            stopped.open()
        }
        await withTaskCancellationHandler {
            await stopped.passage()
        } onCancel: {
            output.gate.open()
        }
        #expect(!Task.isCancelled)
        output.gate.open()
        display.finish()
    }

    @Test func `after a stop of a slow terminal, the next frame begins below the old lines`() async {
        let output = BlockedOutput()
        let display = TerminalDisplay(output: output, style: DisplayStyle(), clock: clock)
        display.add(ProgressRow("file", state: .running, total: 1_000))
        await output.isBlocked.passage()
        display.stop()
        display.say("Later.")
        display.goOn()
        output.gate.open()
        display.flush()
        // No sequence moves the cursor up, because another program may have written below the old lines.
        #expect(output.texts.events.count == 2)
        #expect(output.texts.events.last?.contains("Later.") == true)
        #expect(output.texts.events.last?.contains("\u{1B}[1A") == false)
        display.finish()
    }
}
