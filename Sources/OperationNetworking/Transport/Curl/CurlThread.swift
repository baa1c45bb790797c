// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations
    import Foundation

    /// The thread of a session: how it begins and is set up, and its clock.
    enum CurlThread {
        /// Names the thread and keeps the program's signals away from it.
        ///
        /// What it writes to a connection that the server closed raises no SIGPIPE in it, whatever TLS library does the
        /// writing.
        static func prepare() {
            OKThreadSetName("OperationKit")
            var signals = sigset_t()
            sigfillset(&signals)
            for fault in [SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT] { sigdelset(&signals, fault) }
            pthread_sigmask(SIG_BLOCK, &signals, nil)
        }

        private final class Work {
            let body: @Sendable () -> Void

            init(_ body: @escaping @Sendable () -> Void) { self.body = body }
        }

        /// Begins a thread, which is to be joined or detached; nil if the system has none to give.
        static func begin(_ body: @escaping @Sendable () -> Void) -> pthread_t? {
            var thread = pthread_t()
            let work = Unmanaged.passRetained(Work(body))
            let status = pthread_create(
                &thread, nil,
                { context in
                    if let context { Unmanaged<Work>.fromOpaque(context).takeRetainedValue().body() }
                    return nil
                }, work.toOpaque())
            if status == 0 { return thread }
            work.release()
            return nil
        }

        /// Runs something on a thread that nobody waits for; false if the system has none to give.
        static func run(_ body: @escaping @Sendable () -> Void) -> Bool {
            guard let thread = begin(body) else { return false }
            pthread_detach(thread)
            return true
        }

        /// Nanoseconds of the monotonic clock.
        static var now: Int64 {
            var time = timespec()
            clock_gettime(CLOCK_MONOTONIC, &time)
            return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
        }
    }
#endif
