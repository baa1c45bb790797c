// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import Synchronization

/// An object that draws in the terminal and can stop temporarily.
public protocol TerminalHolder: Sendable {
    /// Stops drawing until ``goOn()``, and returns when the terminal is in its normal state.
    ///
    /// If the terminal accepts no data, the method returns after a moment.
    func stop()
    /// Resumes drawing, beginning immediately.
    func goOn()
    /// Draws a frame immediately, for example because the size of the terminal has changed.
    func redraw()
    /// Shows the cursor and stops drawing permanently, without waiting for longer than a moment.
    func showCursorAtOnce()
}

/// A handler for signals such as Ctrl-C and Ctrl-Z.
///
/// The first Ctrl-C stops the program in an orderly way, and the second Ctrl-C ends the program immediately. Ctrl-Z
/// suspends the program.
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

    /// Creates a handler for an object that draws in the terminal.
    public init(of holder: any TerminalHolder) {
        self.holder = holder
    }

    /// Starts listening to the signals.
    ///
    /// Call this method on the first thread, before the program starts other threads.
    public func listen() {
        TerminalSignals.listen(to: [SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH]) { [self] in take($0) }
    }

    /// The first signal that requested the end of the program.
    public var signal: Int32? { state.withLock { $0.signal } }

    /// Sets the closure that stops the program in an orderly way.
    ///
    /// Without a closure, a signal ends the program immediately.
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
