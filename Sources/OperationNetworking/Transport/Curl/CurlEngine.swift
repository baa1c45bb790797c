// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations
    import Foundation
    import OperationCore

    /// The state that the tasks of a session and its thread share, which consists of the inbox and the thread itself.
    final class CurlEngine: Sendable {
        private enum Standing {
            /// There is no thread, and the next task starts one.
            case resting
            case running(pthread_t)
            case closed
        }

        private struct Inbox {
            var standing = Standing.resting
            var tasks: [CurlTask] = []
            /// Whether the thread waits for events and must be woken.
            var isAsleep = false
            var isClosing = false
            /// Whether the session was released, so that the thread ends after the last task.
            var isFinishing = false
            var endWait = EndWait.unused
        }

        /// The callers that wait for the end of the thread.
        private enum EndWait {
            case unused
            /// One caller joins the thread, and the others wait until it has done so.
            case joining([DispatchSemaphore])
            case joined
        }

        /// The next work of the thread.
        enum Instruction {
            case tasks([CurlTask])
            case close([CurlTask])
            case finish
        }

        let configuration: CurlSession.Configuration
        private let inbox = Locked(Inbox())
        let wakeup = CurlWakeup()
        private let forkCount = OKForkCount()
        private let clockOffset: (@Sendable () -> Duration)?

        /// Creates an engine.
        ///
        /// - Parameter clockOffset: The time by which the clock is ahead of the system's clock, for tests only.
        init(_ configuration: CurlSession.Configuration, clockOffset: (@Sendable () -> Duration)? = nil) {
            self.configuration = configuration
            self.clockOffset = clockOffset
        }

        /// The monotonic time in nanoseconds.
        var now: Int64 {
            guard let clockOffset else { return CurlThread.now }
            return CurlThread.now + clockOffset().saturatedNanoseconds
        }

        /// Notifies the thread, from any thread, that the demands on a task changed.
        func post(_ task: CurlTask) {
            if let problem = unavailability { return endElsewhere(task, problem) }
            let (wakes, refusal) = inbox.withLock { inbox -> (Bool, NetworkError?) in
                switch inbox.standing {
                case .closed: return (false, Self.closed)
                case .resting where !begin(&inbox): return (false, Self.exhausted)
                case .resting, .running: break
                }
                inbox.tasks.append(task)
                return (exchange(&inbox.isAsleep, with: false), nil)
            }
            if wakes { wakeup.wake() }
            if let refusal { endElsewhere(task, refusal) }
        }

        static let exhausted = NetworkError(
            code: .resourcesExhausted, phase: .waiting,
            message:
                "The session could not create a thread or a file descriptor. Raise the limits (ulimit -u, ulimit -n)."
        )

        static let closed = NetworkError(
            code: .sessionClosed, phase: .waiting, message: "The session is closed. Create a new session.")

        private static let forked = NetworkError(
            code: .sessionUnavailable, phase: .waiting,
            message: "A session of the parent process does not work in a child process. Call exec after fork.")

        private var unavailability: NetworkError? {
            if case .failure(let error) = CurlLibrary.shared { return error }
            return isInherited ? Self.forked : nil
        }

        /// Whether this process is a child made by `fork`, in which the thread does not exist and a lock may be held
        /// forever.
        private var isInherited: Bool { OKForkCount() != forkCount }

        /// Ends a task on another thread, because the session has no thread.
        private func endElsewhere(_ task: CurlTask, _ error: NetworkError) {
            // After a fork, the threads of dispatch queues do not exist either.
            if isInherited, CurlThread.run({ task.reportEnd(error) }) { return }
            DispatchQueue.global().async { task.reportEnd(error) }
        }

        /// Starts the thread, under the lock so that there is only one.
        private func begin(_ inbox: inout Inbox) -> Bool {
            guard wakeup.open() else { return false }
            let thread = CurlThread.begin { [self] in
                CurlThread.prepare()
                guard case .success(let library) = CurlLibrary.shared else { return }
                repeat { CurlLoop(self, library).run() } while !threadEnds()
            }
            guard let thread else { return false }
            inbox.standing = .running(thread)
            return true
        }

        func close() {
            guard !isInherited else { return }
            let wakes = inbox.withLock { inbox in
                inbox.isClosing = true
                if case .resting = inbox.standing { inbox.standing = .closed }
                return exchange(&inbox.isAsleep, with: false)
            }
            if wakes { wakeup.wake() }
        }

        func finish() {
            guard !isInherited else { return }
            let wakes = inbox.withLock { inbox in
                inbox.isFinishing = true
                return exchange(&inbox.isAsleep, with: false)
            }
            if wakes { wakeup.wake() }
        }

        /// Waits for the end of the thread, unless this is that thread.
        ///
        /// Any number of callers can wait at the same time.
        func waitForThread() {
            guard !isInherited else { return }
            enum Action {
                case none
                case join(pthread_t)
                case wait(DispatchSemaphore)
            }
            let action: Action = inbox.withLock { inbox in
                if case .running(let thread) = inbox.standing {
                    if pthread_equal(thread, pthread_self()) != 0 { return .none }
                    if case .unused = inbox.endWait {
                        inbox.endWait = .joining([])
                        return .join(thread)
                    }
                }
                // The caller that joins may not be done, although the thread has announced its end.
                guard case .joining(let others) = inbox.endWait else { return .none }
                let semaphore = DispatchSemaphore(value: 0)
                inbox.endWait = .joining(others + [semaphore])
                return .wait(semaphore)
            }
            switch action {
            case .none: break
            case .wait(let semaphore): semaphore.wait()
            case .join(let thread):
                pthread_join(thread, nil)
                let endWait = inbox.withLock { exchange(&$0.endWait, with: .joined) }
                guard case .joining(let others) = endWait else { return }
                for semaphore in others { semaphore.signal() }
            }
        }
    }

    // For the thread.
    extension CurlEngine {
        /// Returns the work that was posted, or `nil` if there is none.
        ///
        /// If there is none and the thread wants to sleep, it may do so, and is woken by new work.
        func collect(thenSleep sleeps: Bool, isIdle: Bool) -> Instruction? {
            inbox.withLock { inbox in
                inbox.isAsleep = false
                if inbox.isClosing { return .close(exchange(&inbox.tasks, with: [])) }
                if !inbox.tasks.isEmpty { return .tasks(exchange(&inbox.tasks, with: [])) }
                if isIdle, inbox.isFinishing { return .finish }
                inbox.isAsleep = sleeps
                return nil
            }
        }

        /// Announces the end of the thread, and returns `false` if tasks were posted in the meantime.
        ///
        /// The thread is detached unless a caller waits to join it.
        private func threadEnds() -> Bool {
            inbox.withLock { inbox in
                guard inbox.tasks.isEmpty else { return false }
                inbox.standing = inbox.isClosing ? .closed : .resting
                if case .unused = inbox.endWait { pthread_detach(pthread_self()) }
                return true
            }
        }
    }

    /// The functions that start and configure the thread of a session, and its clock.
    enum CurlThread {
        /// Names the thread and blocks the signals of the program on it.
        ///
        /// A write to a connection that the server closed raises no SIGPIPE, whichever TLS library makes the write.
        static func prepare() {
            OKThreadSetName("OperationKit")
            var signals = sigset_t()
            sigfillset(&signals)
            for fault in [SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT] { sigdelset(&signals, fault) }
            pthread_sigmask(SIG_BLOCK, &signals, nil)
        }

        /// Starts a thread that must be joined or detached, or returns `nil` if the system has no more threads.
        static func begin(_ body: @escaping @Sendable () -> Void) -> pthread_t? {
            var thread = pthread_t()
            let work = Unmanaged.passRetained(Box(body))
            let status = pthread_create(
                &thread, nil,
                { context in
                    guard let context else { return nil }
                    Unmanaged<Box<@Sendable () -> Void>>.fromOpaque(context).takeRetainedValue().value()
                    return nil
                }, work.toOpaque())
            if status == 0 { return thread }
            work.release()
            return nil
        }

        /// Runs a closure on a thread that is not joined, or returns `false` if the system has no more threads.
        static func run(_ body: @escaping @Sendable () -> Void) -> Bool {
            guard let thread = begin(body) else { return false }
            pthread_detach(thread)
            return true
        }

        /// The monotonic time in nanoseconds.
        static var now: Int64 {
            var time = timespec()
            clock_gettime(CLOCK_MONOTONIC, &time)
            return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
        }
    }

    /// All tasks of a session that were resumed and have not ended, each of which knows its position.
    struct CurlSessionList {
        private var tasks: [CurlTask] = []

        var isEmpty: Bool { tasks.isEmpty }
        var last: CurlTask? { tasks.last }

        /// Adds a task, unless it is in the list.
        mutating func add(_ task: CurlTask, now: Int64) {
            guard task.confined.extras.index < 0 else { return }
            task.confined.extras.index = tasks.count
            task.confined.resumedAt = now
            tasks.append(task)
        }

        /// Removes a task, if it is in the list.
        mutating func remove(_ task: CurlTask) {
            let index = task.confined.extras.index
            guard index >= 0 else { return }
            task.confined.extras.index = -1
            let last = tasks.removeLast()
            if last !== task {
                tasks[index] = last
                last.confined.extras.index = index
            }
        }
    }

    /// A descriptor that wakes the thread of a session from its wait for events.
    final class CurlWakeup: Sendable {
        // Sendable: changed only under the lock of the engine, before its thread exists. All other uses come later.
        private(set) nonisolated(unsafe) var descriptor: Int32 = -1

        deinit {
            if descriptor >= 0 { Foundation.close(descriptor) }
        }

        /// Opens the descriptor unless it is open, and returns `false` if the system has no more descriptors.
        func open() -> Bool {
            if descriptor < 0 { descriptor = OKBellMake() }
            return descriptor >= 0
        }

        func wake() {
            var one: UInt64 = 1
            _ = write(descriptor, &one, 8)
        }
    }

    /// A task of a ``CurlSession``.
    typealias CurlTask = SessionTask<CurlEngine>

    extension CurlEngine: TaskAdapter {
        typealias Transfer = CurlTransfer

        struct Extras {
            /// The position of the task in the list of the loop, or -1 if it is not in the list.
            var index = -1
            /// The number of times that the session sent the request again.
            var repetitions = 0
            /// Whether the request must not use an existing connection.
            var wantsNewConnection = false
            /// Whether an earlier attempt may have reached the server.
            var wasSentBefore = false
        }
    }
#endif
