// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import Synchronization

/// Who has the terminal, and can give it back.
public protocol TerminalHolder: Sendable {
    /// Gives the terminal back for a while; returns when that is done.
    func stop()
    /// Takes the terminal again, and draws at once.
    func goOn()
    /// Draws at once, as when the terminal has another size.
    func redraw()
    /// Gives the terminal back for good, without waiting for longer than a moment.
    func showCursorAtOnce()
}

/// What Ctrl-C and its like do to a program: the first one stops it in order, the second at once; Ctrl-Z gives the terminal
/// back for a while.
///
/// ```swift
/// let display = TerminalDisplay()
/// let interruption = TerminalInterruption(of: display)
/// interruption.listen()
/// interruption.stop { signal in print("to be stopped by", signal) }
/// ```
public final class TerminalInterruption: Sendable {
    private struct State {
        var signal: Int32?
        var stop: (@Sendable (Int32) -> Void)?
        var isStopping = false
    }

    private let holder: any TerminalHolder
    private let state = Mutex(State())

    /// Makes one for who has the terminal.
    public init(of holder: any TerminalHolder) {
        self.holder = holder
    }

    /// Listens to the signals; to be called on the first thread before there are others.
    public func listen() {
        TerminalSignals.listen(to: [SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH]) { [self] in take($0) }
    }

    /// The first signal that was to end the program.
    public var signal: Int32? { state.withLock { $0.signal } }

    /// Says how the program is stopped in order; until then a signal ends it at once.
    public func stop(_ body: @escaping @Sendable (Int32) -> Void) { state.withLock { $0.stop = body } }

    private func take(_ signal: Int32) {
        switch signal {
        case SIGWINCH: holder.redraw()
        case SIGTSTP:
            holder.stop()
            TerminalSignals.stopProcess()
            holder.goOn()
        default: end(by: signal)
        }
    }

    private func end(by signal: Int32) {
        let stop = state.withLock { state -> (@Sendable (Int32) -> Void)? in
            state.signal = state.signal ?? signal
            guard !state.isStopping, let stop = state.stop else { return nil }
            state.isStopping = true
            return stop
        }
        if let stop { return stop(signal) }
        holder.showCursorAtOnce()
        TerminalSignals.endProcess(by: signal)
    }
}
