// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import OperationCore
import Synchronization

/// Shows in a terminal what goes on: any number of rows, drawn again in their place, and lines that stay above them.
///
/// ```swift
/// let display = TerminalDisplay()
/// let row = display.add(ProgressRow("photo.jpg", state: .running, total: 5_000_000))
/// display.advance(row, to: 1_200_000)
/// display.say("Anything that is to stay.")
/// display.end(row, .done)
/// display.finish()
/// ```
///
/// All calls are allowed on any thread, and none waits for the terminal but ``finish()``. A frame is one write, and there
/// are at most ten in a second. In a pipe or a file there are no frames: each row becomes a line when it ends.
public final class TerminalDisplay: TerminalHolder {
    private struct State {
        var board = DisplayBoard()
        var encoder: FrameEncoder
        var lastFrame: OperationInstant?
        /// When the next frame is due, if one is.
        var due: OperationInstant?
        var timer: (any OperationTimer)?
        var isFinished = false
        /// Whether somebody else has the screen.
        var isStopped = false
    }

    /// Not more often than this is a frame drawn.
    public static let frameInterval = Duration.milliseconds(100)
    /// After so long a frame is drawn though nothing has changed: rates fall, and times go on.
    static let idleInterval = Duration.seconds(1)

    /// What is shown.
    public let style: DisplayStyle
    private let output: any DisplayOutput
    private let clock: any OperationClock
    private let state: Mutex<State>
    /// Whoever writes, writes here: frames never mix, and a terminal that is slow holds up nobody else.
    private let queue = DispatchQueue(label: "TerminalDisplay")

    /// Makes a display on the standard error, as its terminal and the environment allow.
    public convenience init(clock: any OperationClock = .system) {
        let output = DescriptorOutput.standardError
        self.init(output: output, style: output.style, clock: clock)
    }

    /// Makes a display on any output.
    public init(output: any DisplayOutput, style: DisplayStyle, clock: any OperationClock = .system) {
        self.output = output
        self.style = style
        self.clock = clock
        state = Mutex(State(encoder: FrameEncoder(style)))
    }

    /// Adds a row, and returns the number by which it is changed.
    @discardableResult
    public func add(_ row: ProgressRow) -> Int {
        update { $0.add(row, at: $1) }
    }

    /// Says how much is there of a row, which goes on with that, and of how much if that is known.
    public func advance(_ id: Int, to completed: Int64, of total: Int64? = nil) {
        update { board, now in
            board.change(id, at: now) { row in
                row.state = .running
                row.completed = completed
                row.total = total ?? row.total
            }
        }
    }

    /// Says that a row waits, and for what, until it advances.
    public func pause(_ id: Int, because reason: String) {
        update { board, now in
            board.change(id, at: now) { row in
                row.state = .paused
                row.note = reason
            }
        }
    }

    /// Ends a row: it becomes a line that stays, and changes no more.
    public func end(_ id: Int, _ state: ProgressRow.State, note: String = "") {
        update { board, now in
            board.change(id, at: now) { row in
                row.state = state
                row.note = note
            }
        }
    }

    /// Puts another row in the place of one.
    public func set(_ id: Int, to row: ProgressRow) {
        update { board, now in board.change(id, at: now) { $0 = row } }
    }

    /// Says something that stays, above the rows.
    public func say(_ text: String, _ role: DisplayLine.Role = .plain) {
        update { board, _ in board.say(text, role) }
    }

    /// Says in one line how far all is.
    public func saySummary() {
        let layout = BoardLayout(style: style, size: output.size)
        update { board, now in board.say(layout.summary(board, at: now).text, .plain) }
    }

    /// Draws what is to be drawn, without the rows that go on, and gives the terminal back; returns when that is done.
    ///
    /// Nothing is shown after that but what is said, one line after another.
    public func finish() {
        let timer = state.withLock { state in
            state.isFinished = true
            state.due = nil
            return exchange(&state.timer, nil)
        }
        timer?.cancel()
        queue.sync { draw() }
    }

    /// Waits until all that was due is drawn.
    public func flush() { queue.sync {} }

    /// Gives the terminal back for a while, as when the program is stopped; returns when that is done.
    public func stop() {
        state.withLock { $0.isStopped = true }
        queue.sync {
            let text = state.withLock { state in
                state.encoder.forget()
                return state.encoder.showCursor()
            }
            if !text.isEmpty { output.write(text) }
        }
    }

    /// Takes the terminal again, and draws at once.
    public func goOn() {
        state.withLock { $0.isStopped = false }
        redraw()
    }

    /// Draws at once, as when the terminal has another size.
    public func redraw() {
        queue.async { [self] in draw() }
    }

    /// Shows the cursor again, if it is hidden, and draws nothing more: for who waits for a terminal a moment at most.
    public func showCursorAtOnce() {
        let text = state.withLock { state in
            state.isStopped = true
            return state.encoder.showCursor()
        }
        guard !text.isEmpty else { return }
        // Behind a frame that is being written, or its end would hide the cursor again.
        let isWritten = DispatchSemaphore(value: 0)
        queue.async { [self] in
            output.write(text)
            isWritten.signal()
        }
        if isWritten.wait(timeout: .now() + .milliseconds(200)) == .timedOut { output.write(text) }
    }

    // When something is drawn.

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

    /// Has the next frame drawn as soon as may be.
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
        // Another frame may be due by now, or none.
        let old = state.withLock { state in
            state.due == due ? exchange(&state.timer, timer) : timer
        }
        old?.cancel()
    }

    /// Only on `queue`.
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

/// Puts a value in the place of another, which is returned.
private func exchange<Value>(_ place: inout Value, _ new: Value) -> Value {
    defer { place = new }
    return place
}
