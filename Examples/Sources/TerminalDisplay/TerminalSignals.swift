// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A namespace for functions that receive signals on a separate thread, on which any code is allowed.
///
/// ```swift
/// TerminalSignals.listen(to: [SIGINT, SIGTERM, SIGWINCH]) { signal in
///     print("signal", signal)
/// }
/// ```
///
/// Call ``listen(to:_:)`` at the start of the program, on its first thread, because a signal can still interrupt
/// threads that exist before the call. Programs that this program starts inherit the blocked signals, until they change
/// that.
public enum TerminalSignals {
    /// Calls a closure for each of the given signals, one after another, until the program ends.
    ///
    /// The function does not receive signals that the process ignores from the start, for example because of `nohup` or
    /// a shell that runs the process in the background.
    public static func listen(to signals: [Int32], _ body: @escaping @Sendable (Int32) -> Void) {
        var blocked = sigset_t()
        sigemptyset(&blocked)
        let heeded = signals.filter { !isIgnored($0) }
        guard !heeded.isEmpty else { return }
        for signal in heeded { sigaddset(&blocked, signal) }
        // All threads that begin later inherit the blocked signals, so the signals remain pending until this thread
        // receives them.
        pthread_sigmask(SIG_BLOCK, &blocked, nil)
        let waited = blocked
        let thread = Thread {
            var waited = waited
            while true {
                var signal: Int32 = 0
                if sigwait(&waited, &signal) == 0 { body(signal) }
            }
        }
        thread.name = "TerminalSignals"
        thread.stackSize = 512 << 10
        thread.start()
    }

    /// Returns whether the process ignores a signal, because the system would still deliver it to a thread that waits
    /// for it.
    private static func isIgnored(_ signal: Int32) -> Bool {
        var action = sigaction()
        guard sigaction(signal, nil, &action) == 0 else { return false }
        #if canImport(Darwin)
            let handler = action.__sigaction_u.__sa_handler
        #else
            let handler = action.__sigaction_handler.sa_handler
        #endif
        return unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// Suspends the program as Ctrl-Z does, and returns when the program continues.
    ///
    /// If no shell can resume the program, the system does not suspend it.
    public static func stopProcess() { deliver(SIGTSTP) }

    /// Ends the program with a signal, so that the shell sees the signal and ends a loop that contains the program.
    public static func endProcess(by signal: Int32) -> Never {
        fflush(nil)
        Foundation.signal(signal, SIG_DFL)
        deliver(signal)
        _exit(128 + signal)
    }

    /// Performs the system's default action for a signal on the current thread.
    private static func deliver(_ signal: Int32) {
        var one = sigset_t()
        sigemptyset(&one)
        sigaddset(&one, signal)
        pthread_sigmask(SIG_UNBLOCK, &one, nil)
        raise(signal)
        pthread_sigmask(SIG_BLOCK, &one, nil)
    }
}
