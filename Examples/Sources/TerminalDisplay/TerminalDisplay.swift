// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import OperationCore
import Synchronization

/// A display that shows progress in a terminal, with rows that are redrawn in place and permanent lines above them.
///
/// ```swift
/// let display = TerminalDisplay()
/// let row = display.add(ProgressRow("photo.jpg", state: .running, total: 5_000_000))
/// display.advance(row, to: 1_200_000)
/// display.say("A message that stays.")
/// display.end(row, .done)
/// display.finish()
/// ```
///
/// You can call all methods on any thread. Only ``finish()`` and ``flush()`` wait for the terminal, and ``stop()`` waits
/// for a moment. The display writes each frame in one piece, at most ten times per second. In a pipe or a file, the
/// display writes no frames, but one line for each row that ends.
public final class TerminalDisplay: TerminalHolder {
    private struct State {
        var board = DisplayBoard()
        var encoder: FrameEncoder
        var lastFrame: OperationInstant?
        /// The time at which the next frame is due, or nil if no frame is due.
        var due: OperationInstant?
        var timer: (any OperationTimer)?
        var isFinished = false
        /// A Boolean value that indicates whether another program uses the screen.
        var isStopped = false
    }

    /// The minimum time between frames.
    public static let frameInterval = Duration.milliseconds(100)
    /// The time after which a frame is drawn even if no row has changed, because rates and times change.
    static let idleInterval = Duration.seconds(1)

    /// The features that the display uses.
    public let style: DisplayStyle
    private let output: any DisplayOutput
    private let clock: any OperationClock
    private let state: Mutex<State>
    /// The queue on which the display writes, so that frames never mix and a slow terminal does not block other
    /// threads.
    private let queue = DispatchQueue(label: "TerminalDisplay")

    /// Creates a display that writes to standard error and detects the style of the terminal.
    public convenience init(clock: any OperationClock = .system) {
        let output = DescriptorOutput.standardError
        self.init(output: output, style: output.style, clock: clock)
    }

    /// Creates a display for an output and a style.
    public init(output: any DisplayOutput, style: DisplayStyle, clock: any OperationClock = .system) {
        self.output = output
        self.style = style
        self.clock = clock
        state = Mutex(State(encoder: FrameEncoder(style)))
    }

    /// Adds a row, and returns the ID with which you can change the row.
    @discardableResult
    public func add(_ row: ProgressRow) -> Int {
        update { $0.add(row, at: $1) }
    }

    /// Sets the completed amount of a row, and the total amount if it is known.
    ///
    /// The row is then in progress.
    public func advance(_ id: Int, to completed: Int64, of total: Int64? = nil) {
        update { board, now in
            board.change(id, at: now) { row in
                row.state = .running
                row.completed = completed
                row.total = total ?? row.total
            }
        }
    }

    /// Shows that a row waits, and the reason, until the row advances.
    public func pause(_ id: Int, because reason: String) {
        update { board, now in
            board.change(id, at: now) { row in
                row.state = .paused
                row.note = reason
            }
        }
    }

    /// Ends a row, which becomes a permanent line.
    public func end(_ id: Int, _ state: ProgressRow.State, note: String = "") {
        update { board, now in
            board.change(id, at: now) { row in
                row.state = state
                row.note = note
            }
        }
    }

    /// Replaces a row.
    public func set(_ id: Int, to row: ProgressRow) {
        update { board, now in board.change(id, at: now) { $0 = row } }
    }

    /// Prints a permanent message above the rows.
    public func say(_ text: String, _ role: DisplayLine.Role = .plain) {
        update { board, _ in board.say(text, role) }
    }

    /// Prints a one-line summary of all rows.
    public func saySummary() {
        let layout = BoardLayout(style: style, size: output.size)
        update { board, now in board.say(layout.summary(board, at: now).text, .plain) }
    }

    /// Writes all pending lines, removes the active rows, shows the cursor, and waits until the output is written.
    ///
    /// Afterward, the display shows only messages, one line after another.
    public func finish() {
        let timer = state.withLock { state in
            state.isFinished = true
            state.due = nil
            return exchange(&state.timer, nil)
        }
        timer?.cancel()
        queue.sync { draw() }
    }

    /// Waits until all pending output is written.
    public func flush() { queue.sync {} }

    /// Stops drawing and shows the cursor, for example before the program is suspended.
    ///
    /// The method returns when the output is written, or after a moment if the terminal accepts no data.
    public func stop() {
        state.withLock { $0.isStopped = true }
        _ = writeSoon { [self] in
            state.withLock { state -> String in
                // Another program may write between the lines on the screen and the next frame.
                state.encoder.forget()
                // If the terminal was slow, the display may have resumed.
                return state.isStopped ? state.encoder.showCursor() : ""
            }
        }
    }

    /// Resumes drawing, beginning immediately.
    public func goOn() {
        state.withLock { $0.isStopped = false }
        redraw()
    }

    /// Draws a frame immediately, for example because the size of the terminal has changed.
    public func redraw() {
        queue.async { [self] in draw() }
    }

    /// Shows the cursor again and draws nothing more, without waiting for longer than a moment.
    public func showCursorAtOnce() {
        let text = state.withLock { state in
            state.isStopped = true
            return state.encoder.showCursor()
        }
        guard !text.isEmpty else { return }
        // The cursor is shown after a frame in progress, because the end of the frame would hide the cursor again.
        if !writeSoon({ text }) { output.write(text) }
    }

    /// Writes a text after a frame in progress, and returns `false` if this takes longer than a moment.
    ///
    /// The thread that receives the signals must not wait for a terminal or a pipe that accepts no data.
    private func writeSoon(_ makeText: @escaping @Sendable () -> String) -> Bool {
        let isWritten = DispatchSemaphore(value: 0)
        queue.async { [self] in
            let text = makeText()
            if !text.isEmpty { output.write(text) }
            isWritten.signal()
        }
        return isWritten.wait(timeout: .now() + .milliseconds(200)) == .success
    }

    // Timing of frames.

    private func update<Value>(_ body: (inout DisplayBoard, OperationInstant) -> Value) -> Value {
        let now = clock.now
        let (value, isDue) = state.withLock { state in
            let value = body(&state.board, now)
            return (value, isFrameWanted(state))
        }
        if isDue { setTimer() }
        return value
    }

    private func isFrameWanted(_ state: State) -> Bool {
        guard let due = state.due else { return true }
        return due > earliest(state)
    }

    private func earliest(_ state: State) -> OperationInstant {
        guard let last = state.lastFrame, !state.isFinished else { return OperationInstant(offset: .zero) }
        return last.advanced(by: Self.frameInterval)
    }

    /// Starts the timer for the next frame.
    private func setTimer() {
        let now = clock.now
        let due: OperationInstant? = state.withLock { state in
            guard isFrameWanted(state) else { return nil }
            let due = max(earliest(state), now)
            state.due = due
            return due
        }
        guard let due else { return }
        guard due > now else { return queue.async { [self] in draw() } }
        schedule(at: due)
    }

    private func schedule(at due: OperationInstant) {
        let timer = clock.schedule(at: due) { [weak self] in
            guard let self else { return }
            queue.async { self.draw() }
        }
        // Another frame might be due now, or none.
        let old = state.withLock { state in
            state.due == due ? exchange(&state.timer, timer) : timer
        }
        old?.cancel()
    }

    /// Draws a frame on `queue`.
    private func draw() {
        let size = output.size
        let now = clock.now
        let timer = state.withLock { exchange(&$0.timer, nil) }
        timer?.cancel()
        let (text, next) = state.withLock { state -> (String, OperationInstant?) in
            state.due = nil
            guard !state.isStopped else { return ("", nil) }
            let layout = BoardLayout(style: style, size: size)
            let permanent = state.board.takeNotes().flatMap { layout.lines($0) }
            let live = state.isFinished || !style.isLive ? [] : layout.live(state.board, at: now)
            var text = state.encoder.frame(permanent: permanent, live: live, size: size)
            state.lastFrame = now
            if live.isEmpty { text += state.encoder.showCursor() }
            guard !live.isEmpty else { return (text, nil) }
            state.due = now.advanced(by: Self.idleInterval)
            return (text, state.due)
        }
        if !text.isEmpty { output.write(text) }
        if let next { schedule(at: next) }
    }
}

/// Replaces a value and returns the old value.
private func exchange<Value>(_ place: inout Value, _ new: Value) -> Value {
    defer { place = new }
    return place
}
