// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Tells of the signals that a person at a terminal sends: on a thread of its own, where everything is allowed.
///
/// ```swift
/// TerminalSignals.listen(to: [SIGINT, SIGTERM, SIGWINCH]) { signal in
///     print("signal", signal)
/// }
/// ```
///
/// To be called first of all in a program, on its first thread: threads that were there before would still be interrupted.
/// Programs that are started have these signals blocked until they change that.
public enum TerminalSignals {
    /// Calls `body` for each of these signals, one after another, as long as the program runs.
    public static func listen(to signals: [Int32], _ body: @escaping @Sendable (Int32) -> Void) {
        var blocked = sigset_t()
        sigemptyset(&blocked)
        for signal in signals { sigaddset(&blocked, signal) }
        // All threads that begin after this one inherit what it blocks, so the signals wait for who asks for them.
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

    /// Stops the program as Ctrl-Z does, and returns when it was let go on.
    public static func stopProcess() {
        raise(SIGSTOP)
    }
}
