// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if os(Linux)
    import CurlDeclarations
    import Glibc

    /// The thread of a session: how it is set up, and its clock.
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

        /// Nanoseconds of the monotonic clock.
        static var now: Int64 {
            var time = timespec()
            clock_gettime(CLOCK_MONOTONIC, &time)
            return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
        }
    }
#endif
