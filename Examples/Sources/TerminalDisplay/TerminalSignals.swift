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
    ///
    /// Signals that whoever started the program set to be ignored, as `nohup` does and a shell for jobs in the background,
    /// stay ignored.
    public static func listen(to signals: [Int32], _ body: @escaping @Sendable (Int32) -> Void) {
        var blocked = sigset_t()
        sigemptyset(&blocked)
        let heeded = signals.filter { !isIgnored($0) }
        guard !heeded.isEmpty else { return }
        for signal in heeded { sigaddset(&blocked, signal) }
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

    /// Whether a signal is thrown away: the system would still hand it to who waits for it.
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

    /// Stops the program as Ctrl-Z does, and returns when it was let go on.
    ///
    /// Where there is no shell that could let it go on, the system does not stop it.
    public static func stopProcess() { deliver(SIGTSTP) }

    /// Ends the program by a signal, so that the shell that waits for it sees what it was, and ends its loop.
    public static func endProcess(by signal: Int32) -> Never {
        fflush(nil)
        Foundation.signal(signal, SIG_DFL)
        deliver(signal)
        _exit(128 + signal)
    }

    /// Has this thread do what the system does about a signal.
    private static func deliver(_ signal: Int32) {
        var one = sigset_t()
        sigemptyset(&one)
        sigaddset(&one, signal)
        pthread_sigmask(SIG_UNBLOCK, &one, nil)
        raise(signal)
        pthread_sigmask(SIG_BLOCK, &one, nil)
    }
}
