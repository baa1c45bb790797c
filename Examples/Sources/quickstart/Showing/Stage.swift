// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationNetworking
import Synchronization
import TerminalDisplay

/// An output that prints titles and messages, and shows a bar for each transfer in progress.
final class Stage: Sendable {
    /// An error for an unexpected result.
    struct Surprise: Error, CustomStringConvertible {
        let description: String
    }

    /// A transfer with a bar.
    struct Row: Sendable {
        fileprivate let display: TerminalDisplay
        fileprivate let id: Int

        func advance(_ progress: TransferProgress) {
            display.advance(id, to: progress.completedBytes, of: progress.totalBytes)
        }

        func pause(_ reason: String) { display.pause(id, because: reason) }
    }

    /// The folder for the files of the run.
    let folder: URL
    /// The serial queue for handlers.
    let queue = DispatchQueue(label: "quickstart")
    private let chapter = Mutex(0)
    private let display = Mutex(Stage.makeDisplay())
    /// A lock that is held while another display takes over, and while another program uses the terminal.
    private let terminal = NSLock()
    /// A Boolean value that indicates whether ``stop()`` took the lock, which ``goOn()`` then releases.
    private let isTaken = Mutex(false)

    init(folder: URL) {
        self.folder = folder
    }

    private static func makeDisplay() -> TerminalDisplay {
        TerminalDisplay(output: DescriptorOutput.standardOutput, style: DescriptorOutput.standardOutput.style)
    }

    /// The display that currently writes to the terminal.
    var present: TerminalDisplay { display.withLock { $0 } }

    /// Begins a chapter, unless the user has interrupted the program.
    func begin(_ title: String) throws {
        try Task.checkCancellation()
        let number = chapter.withLock { chapter in
            chapter += 1
            return chapter
        }
        present.say("\(number). \(title)", .bar)
    }

    /// Prints a message in the current chapter.
    func say(_ text: String) { present.say("   \(text)") }

    /// Prints the decision after a failed attempt.
    func say(_ event: RetryEvent) {
        let isStatus = event.error.code == .unacceptableStatus
        let failure = isStatus ? "status \(event.error.status ?? 0)" : "\(event.error.code)"
        let next = event.pause.map { "next attempt in \($0.inMilliseconds) ms" } ?? "no other attempt, \(event.reason)"
        say("attempt \(event.attempt) failed, \(failure); \(next)")
    }

    /// Prints a message about the program or its end.
    func tell(_ text: String, _ role: DisplayLine.Role = .plain) { present.say(text, role) }

    /// Throws an error if a condition is false.
    func expect(_ isSo: Bool, _ flaw: String) throws {
        if !isSo { throw Surprise(description: flaw) }
    }

    /// Shows a bar while a transfer is in progress.
    func show<Result>(_ name: String, _ body: (Row) async throws -> Result) async throws -> Result {
        // Each transfer has its own display, because this program shows no total progress.
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

    /// Removes the active rows and shows the cursor.
    func finish() {
        queue.sync {}
        present.finish()
    }
}

// The display that stops drawing is the one that resumes later. No other display takes over during this time.
extension Stage: TerminalHolder {
    func stop() {
        let isTaken = takeTerminal()
        self.isTaken.withLock { $0 = isTaken }
        present.stop()
    }

    func goOn() {
        present.goOn()
        if isTaken.withLock({ $0 }) { terminal.unlock() }
    }

    func redraw() { present.redraw() }

    func showCursorAtOnce() {
        _ = takeTerminal()
        present.showCursorAtOnce()
    }

    /// Takes the lock, and returns `false` if this takes longer than a moment.
    ///
    /// The thread that holds the lock might be waiting for a terminal that accepts no data.
    private func takeTerminal() -> Bool { terminal.lock(before: Date(timeIntervalSinceNow: 0.2)) }
}

extension Duration {
    fileprivate var inMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1_000 + attoseconds / 1_000_000_000_000_000
    }
}
