// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationNetworking
import Synchronization
import TerminalDisplay

/// Shows the story: titles and lines that stay, and a bar for each transfer as long as it goes on.
final class Stage: Sendable {
    /// What was not as it should be.
    struct Surprise: Error, CustomStringConvertible {
        let description: String
    }

    /// A transfer that is shown.
    struct Row: Sendable {
        fileprivate let display: TerminalDisplay
        fileprivate let id: Int

        func advance(_ progress: TransferProgress) {
            display.advance(id, to: progress.completedBytes, of: progress.totalBytes)
        }

        func pause(_ reason: String) { display.pause(id, because: reason) }
    }

    /// Where files of the run go.
    let folder: URL
    /// Where handlers are called, one after another.
    let queue = DispatchQueue(label: "quickstart")
    private let chapter = Mutex(0)
    private let display = Mutex(Stage.makeDisplay())
    /// Held by who puts another display in the place of one, and as long as the terminal is somebody else's.
    private let terminal = NSLock()

    init(folder: URL) {
        self.folder = folder
    }

    private static func makeDisplay() -> TerminalDisplay {
        TerminalDisplay(output: DescriptorOutput.standardOutput, style: DescriptorOutput.standardOutput.style)
    }

    /// The display that has the terminal now.
    var present: TerminalDisplay { display.withLock { $0 } }

    /// Begins a chapter, unless somebody wants the program to end.
    func begin(_ title: String) throws {
        try Task.checkCancellation()
        let number = chapter.withLock { chapter in
            chapter += 1
            return chapter
        }
        present.say("\(number). \(title)", .bar)
    }

    /// Says something that happened.
    func say(_ text: String) { present.say("   \(text)") }

    /// Says what is done about an attempt that failed.
    func say(_ event: RetryEvent) {
        let isStatus = event.error.code == .unacceptableStatus
        let failure = isStatus ? "status \(event.error.status ?? 0)" : "\(event.error.code)"
        let next = event.pause.map { "next attempt in \($0.inMilliseconds) ms" } ?? "no other attempt, \(event.reason)"
        say("attempt \(event.attempt) failed, \(failure); \(next)")
    }

    /// Says something about the program, or how it ended.
    func tell(_ text: String, _ role: DisplayLine.Role = .plain) { present.say(text, role) }

    /// Ends the story as not as it should be, unless it is.
    func expect(_ isSo: Bool, _ flaw: String) throws {
        if !isSo { throw Surprise(description: flaw) }
    }

    /// Shows a transfer as long as it goes on.
    func show<Result>(_ name: String, _ body: (Row) async throws -> Result) async throws -> Result {
        // Each has a display of its own: here nobody asks how far all of them are together.
        let display = present
        let row = Row(display: display, id: display.add(ProgressRow(name, state: .running)))
        defer { replace(display) }
        do {
            let result = try await body(row)
            queue.sync {}
            display.end(row.id, .done)
            return result
        } catch {
            display.end(row.id, .failed, note: Task.isCancelled ? "interrupted" : "\(error)")
            throw error
        }
    }

    private func replace(_ old: TerminalDisplay) {
        terminal.withLock {
            old.finish()
            display.withLock { $0 = Stage.makeDisplay() }
        }
    }

    /// Gives the terminal back.
    func finish() {
        queue.sync {}
        present.finish()
    }
}

// The display that gives the terminal back is the one that takes it again: until then there is no other.
extension Stage: TerminalHolder {
    func stop() {
        terminal.lock()
        present.stop()
    }

    func goOn() {
        present.goOn()
        terminal.unlock()
    }

    func redraw() { present.redraw() }

    func showCursorAtOnce() {
        // Who has it may be waiting for a terminal that takes nothing.
        _ = terminal.lock(before: Date(timeIntervalSinceNow: 0.2))
        present.showCursorAtOnce()
    }
}

extension Duration {
    fileprivate var inMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1_000 + attoseconds / 1_000_000_000_000_000
    }
}
