// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if os(Linux)
    import CurlDeclarations
    import Foundation

    /// What tasks and the session's thread share: the mailbox, and the thread itself.
    final class CurlEngine: Sendable {
        private enum Standing {
            /// There is no thread; the next task begins one.
            case resting
            case running(pthread_t)
            case closed
        }

        private struct Mailbox {
            var standing = Standing.resting
            var tasks: [CurlTask] = []
            /// The thread waits for events, and must be woken.
            var isAsleep = false
            var isClosing = false
            /// Nobody has the session any more: the thread ends after the last task.
            var isFinishing = false
            /// Somebody waits for the end of the thread, or did.
            var isAwaited = false
        }

        /// What the thread is to do next.
        enum Mail {
            case tasks([CurlTask])
            case close([CurlTask])
            case finish
        }

        let configuration: CurlSession.Configuration
        private let mailbox = Locked(Mailbox())
        private let bell = CurlBell()
        private let forkCount = OKForkCount()

        init(_ configuration: CurlSession.Configuration) {
            self.configuration = configuration
        }

        /// From any thread: there is something new with the task.
        func post(_ task: CurlTask) {
            if let problem = unavailability { return endElsewhere(task, problem) }
            enum Outcome { case posted, ring, refused(NetworkError) }
            let outcome: Outcome = mailbox.withLock { mailbox in
                switch mailbox.standing {
                case .closed: return .refused(Self.closed)
                case .resting where !begin(&mailbox): return .refused(Self.exhausted)
                case .resting, .running: break
                }
                mailbox.tasks.append(task)
                return exchange(&mailbox.isAsleep, with: false) ? .ring : .posted
            }
            switch outcome {
            case .posted: break
            case .ring: bell.ring()
            case .refused(let error): endElsewhere(task, error)
            }
        }

        static let exhausted = NetworkError(
            code: .resourcesExhausted, phase: .waiting,
            message: "The session could not get a thread or a file descriptor. Raise the limits (ulimit -u, ulimit -n)."
        )

        static let closed = NetworkError(
            code: .sessionClosed, phase: .waiting, message: "The session is closed. Make a new one.")

        private var unavailability: NetworkError? {
            if case .failure(let error) = CurlLibrary.shared { return error }
            guard OKForkCount() == forkCount else {
                return NetworkError(
                    code: .sessionUnavailable, phase: .waiting,
                    message: "The session was made before the process was forked. Make a new one in the child.")
            }
            return bell.isValid ? nil : Self.exhausted
        }

        /// There is no thread of ours to tell it on.
        private func endElsewhere(_ task: CurlTask, _ error: NetworkError) {
            DispatchQueue.global().async { task.tellEnd(error) }
        }

        /// Begins the thread; under the lock, so that there is one.
        private func begin(_ mailbox: inout Mailbox) -> Bool {
            var thread = pthread_t()
            let context = Unmanaged.passRetained(self)
            let status = pthread_create(
                &thread, nil,
                { context in
                    guard let context else { return nil }
                    let engine = Unmanaged<CurlEngine>.fromOpaque(context).takeRetainedValue()
                    CurlThread.prepare()
                    if case .success(let library) = CurlLibrary.shared { CurlLoop(engine, library).run() }
                    return nil
                }, context.toOpaque())
            guard status == 0 else {
                context.release()
                return false
            }
            mailbox.standing = .running(thread)
            return true
        }

        func close() {
            let rings = mailbox.withLock { mailbox in
                mailbox.isClosing = true
                if case .resting = mailbox.standing { mailbox.standing = .closed }
                return exchange(&mailbox.isAsleep, with: false)
            }
            if rings { bell.ring() }
        }

        func finish() {
            let rings = mailbox.withLock { mailbox in
                mailbox.isFinishing = true
                return exchange(&mailbox.isAsleep, with: false)
            }
            if rings { bell.ring() }
        }

        /// Waits for the end of the thread, unless this is it.
        func waitForThread() {
            let thread = mailbox.withLock { mailbox -> pthread_t? in
                guard case .running(let thread) = mailbox.standing, pthread_equal(thread, pthread_self()) == 0,
                    !mailbox.isAwaited
                else { return nil }
                mailbox.isAwaited = true
                return thread
            }
            if let thread { pthread_join(thread, nil) }
        }
    }

    // For the thread.
    extension CurlEngine {
        /// By what the thread is woken from its wait for events.
        var bellDescriptor: Int32 { bell.descriptor }

        func silenceBell() { bell.silence() }

        /// What came in; nil if nothing did, and then the thread may sleep if it wants to, and will be woken.
        func collect(thenSleep sleeps: Bool, isIdle: Bool) -> Mail? {
            mailbox.withLock { mailbox in
                mailbox.isAsleep = false
                if mailbox.isClosing { return .close(exchange(&mailbox.tasks, with: [])) }
                if !mailbox.tasks.isEmpty { return .tasks(exchange(&mailbox.tasks, with: [])) }
                if isIdle, mailbox.isFinishing { return .finish }
                mailbox.isAsleep = sleeps
                return nil
            }
        }

        /// The thread is to end, to be joined by who waits for it; false if something came in meanwhile.
        func threadEnds() -> Bool {
            mailbox.withLock { mailbox in
                guard mailbox.tasks.isEmpty else { return false }
                mailbox.standing = mailbox.isClosing ? .closed : .resting
                if !mailbox.isAwaited { pthread_detach(pthread_self()) }
                return true
            }
        }
    }
#endif
