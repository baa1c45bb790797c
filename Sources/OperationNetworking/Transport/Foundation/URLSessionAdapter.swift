// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An object that carries out the tasks of one `URLSession`.
///
/// The adapter grants slots, creates the tasks of Foundation and notifies the receivers. All of this happens on its
/// queue. Foundation's callbacks only enqueue their events, because on Linux hardly any function may be called from a
/// callback.
package final class URLSessionAdapter: Sendable {
    /// The maximum number of bytes that may arrive while delivery is paused, before the transfer is given up.
    static let maximumPendingBytes = 64 << 20

    // Sendable: what is not a constant is only used on `queue`.
    private let queue: DispatchQueue
    package nonisolated(unsafe) var slots: SlotTable<URLSessionTransferTask>
    /// The tasks that were resumed and have not ended.
    private nonisolated(unsafe) var tasks: [ObjectIdentifier: URLSessionTransferTask] = [:]
    private let making = Locked(Making())
    private let maker: any URLSessionTaskMaking
    /// The user's session.
    private let session: WeakReference<URLSession>?
    /// The folder for bodies that must be written to a file.
    private let folder: URL

    /// Whether tasks of Foundation may be created, and whether one is being created.
    private struct Making {
        var isClosed = false
        /// The thread that creates a task, or `nil` if there is none.
        var thread: pthread_t?
        /// The threads that close the session and wait until that task exists.
        var waiting: [DispatchSemaphore] = []
    }

    init(_ session: URLSession) {
        queue = DispatchQueue(label: "OperationKit.URLSession", autoreleaseFrequency: .workItem)
        self.session = WeakReference(session)
        folder = FileManager.default.temporaryDirectory
        maker = URLSessionTaskMaker(session)
        let perHost = URLSessionTaskMaker.maximumPerHost(session)
        // Foundation looks up names on any number of its own threads.
        slots = SlotTable(perHost: perHost, total: .max, lookups: .max)
    }

    /// Creates the adapter of a session whose tasks are created by `maker`.
    package init(_ maker: any URLSessionTaskMaking, on queue: DispatchQueue, spoolingInto folder: URL) {
        self.queue = queue
        self.maker = maker
        self.folder = folder
        session = nil
        slots = SlotTable(perHost: .max, total: .max, lookups: .max)
    }

    static var now: Int64 { Int64(clamping: DispatchTime.now().uptimeNanoseconds) }

    package var now: Int64 { Self.now }

    func perform(_ work: @escaping @Sendable () -> Void) {
        queue.async(execute: work)
    }

    #if canImport(FoundationNetworking)
        /// Records that a response set a cookie that is not stored.
        func reportLostCookies() { (maker as? URLSessionTaskMaker)?.reportLostCookies() }
    #endif

    /// Notifies the adapter that the demands on a task changed.
    package func post(_ task: URLSessionTransferTask) {
        perform { self.visit(task) }
    }

    package var isClosedNow: Bool { making.withLock { $0.isClosed } }

    /// Ends all tasks, and those that are resumed later.
    ///
    /// After this method returns, no task of Foundation is created. If another thread is creating a task, the method
    /// waits until the task exists. A delegate may call the method in `urlSession(_:didCreateTask:)`, because that task
    /// exists.
    package func close() {
        let isMade = making.withLock { making -> DispatchSemaphore? in
            making.isClosed = true
            guard let thread = making.thread, pthread_equal(thread, pthread_self()) == 0 else { return nil }
            let isMade = DispatchSemaphore(value: 0)
            making.waiting.append(isMade)
            return isMade
        }
        isMade?.wait()
        perform { [self] in
            for task in tasks.values { end(task, with: Self.closed) }
            maker.rest()
        }
    }

    /// Closes the connections, because the session was released.
    func rest() {
        perform { if self.tasks.isEmpty { self.maker.rest() } }
    }

    package static var closed: NetworkError {
        NetworkError(code: .sessionClosed, phase: .waiting, message: "The session is closed. Create a new session.")
    }
}

// Tasks.
extension URLSessionAdapter {
    /// Creates a task, which waits for a transfer of the system if there is an existing one.
    package func makeTask(
        with request: NetworkRequest, receiver: any NetworkReceiver, attachedTo existing: (any SystemTask)? = nil
    ) -> any NetworkTask {
        URLSessionTransferTask(request, receiver, self, Extras(existing: existing))
    }

    private func visit(_ task: URLSessionTransferTask) {
        let demands = task.takeDemands()
        if !demands.isCancelled {
            task.deliverPending()
            // A receiver that paused delivery or canceled the task during a call causes another visit.
            guard demands.isPaused || task.confined.pending.isEmpty else { return }
        }
        // A task that ended before this visit is not recorded.
        if demands.isStarted, !task.confined.machine.isEnded { remember(task) }
        applyDemands(demands, task)
        if demands.isStarted, isClosedNow { end(task, with: Self.closed) }
        watchTime(of: task)
        grantSlots()
    }

    private func remember(_ task: URLSessionTransferTask) {
        guard tasks.updateValue(task, forKey: ObjectIdentifier(task)) == nil else { return }
        task.confined.resumedAt = Self.now
        maker.wake()
    }

    /// Ends a task in any state with an error.
    private func end(_ task: URLSessionTransferTask, with error: NetworkError) {
        guard !task.confined.machine.isEnded else { return }
        var error = error
        error.status = task.confined.transfer?.status
        let metrics = task.confined.transfer?.metrics(of: task, now: Self.now)
        leaveQueue(task)
        abandon(task)
        task.dropPending()
        if let metrics { task.report(.metrics(metrics)) }
        _ = task.confined.machine.transferEnded(withFailure: true, isHeldBack: false)
        finish(task, error)
    }
}

// Transfers.
extension URLSessionAdapter {
    private func grantSlots() {
        while let grant = slots.next() {
            let task = grant.ticket
            guard takesSlot(task) else {
                slots.release(grant.slot)
                continue
            }
            let transfer = URLSessionTransfer(
                task, grant.slot, isInBackground: maker.isInBackground, now: Self.now)
            task.confined.transfer = transfer
            load(transfer, task)
            let demands = task.currentDemands
            // The task may have been paused before there was a transfer.
            if demands.isPaused { applyDemands(demands, task) }
        }
    }

    /// Brings the body into a form that Foundation sends safely.
    private func load(_ transfer: URLSessionTransfer, _ task: URLSessionTransferTask) {
        if let existing = exchange(&task.confined.extras.existing, with: nil) {
            return start(transfer, task, .none, existing)
        }
        if let body = URLSessionTransferBody(task.request.body, onlyFiles: maker.isInBackground) {
            start(transfer, task, body)
        } else {
            // A suspension would discard the file, and a body that can be read only once would be lost.
            if !task.request.body.canBeSentAgain { task.confined.machine.connected() }
            transfer.deadlines.writesBody(at: Self.now)
            transfer.spool = BodySpool(task.request.body, into: folder) {
                self.perform { transfer.deadlines.writesBody(at: Self.now) }
            } completion: { result in
                self.perform { self.loaded(result, transfer, task) }
            }
        }
        watchTime(of: task)
    }

    private func loaded(
        _ result: Result<SpooledFile, NetworkError>, _ transfer: URLSessionTransfer, _ task: URLSessionTransferTask
    ) {
        guard task.confined.transfer === transfer else { return }
        switch result {
        case .success(let file):
            start(transfer, task, .temporary(file))
            watchTime(of: task)
        case .failure(let error): end(task, with: error)
        }
        grantSlots()
    }

    private func start(
        _ transfer: URLSessionTransfer, _ task: URLSessionTransferTask, _ body: URLSessionTransferBody,
        _ existing: (any SystemTask)? = nil
    ) {
        do throws(NetworkError) {
            try body.check()
            let isOpen = making.withLock { making in
                if !making.isClosed { making.thread = pthread_self() }
                return !making.isClosed
            }
            guard isOpen else { throw Self.closed }
            defer { didMakeTask() }
            let work = try maker.makeWork(task.request, body, existing) { event in
                self.perform { self.take(event, transfer, task) }
            }
            task.confined.machine.connected()
            transfer.start(work, body, now: Self.now)
        } catch {
            // The task must not end within the loop that grants slots.
            perform { [error] in
                self.end(task, with: error)
                self.grantSlots()
            }
        }
    }

    private func didMakeTask() {
        let waiting = making.withLock { making in
            making.thread = nil
            return exchange(&making.waiting, with: [])
        }
        for thread in waiting { thread.signal() }
    }
}

// The actions of the state machines of tasks.
extension URLSessionAdapter: TaskHost {
    package typealias Carrier = URLSessionAdapter

    /// Returns the queue of a request, which ignores name lookups because Foundation makes them itself.
    package func line(of request: NetworkRequest) -> (name: String, isNumeric: Bool) { (request.origin.name, true) }

    package func phase(of task: URLSessionTransferTask) -> NetworkError.Phase {
        task.confined.transfer?.phase ?? task.confined.machine.restingPhase
    }

    package func abandon(_ task: URLSessionTransferTask) {
        guard let transfer = task.confined.transfer else { return }
        task.confined.transfer = nil
        transfer.stop()
        slots.release(transfer.slot)
    }

    package func apply(_ pausedDirections: TaskMachine.PausedDirections, to task: URLSessionTransferTask) {
        task.confined.transfer?.apply(pausedDirections)
    }

    package func forget(_ task: URLSessionTransferTask) {
        tasks[ObjectIdentifier(task)] = nil
        task.confined.extras.owner = nil
        guard tasks.isEmpty else { return }
        // If the session was released with its last task, there can be no further requests.
        if session?.object == nil { maker.rest() } else { maker.idle { [weak self] in self?.rest() } }
    }
}

// Events of Foundation.
extension URLSessionAdapter {
    private func take(_ event: URLSessionEvent, _ transfer: URLSessionTransfer, _ task: URLSessionTransferTask) {
        // A canceled transfer gets no more events, and its question about a redirect must not be answered.
        guard task.confined.transfer === transfer else { return }
        switch event {
        case .redirect(let refuse): refuse()
        case .refusedChallenge: transfer.isChallengeRefused = true
        case .sent(let count):
            if count > 0 { task.confined.wasSent = true }
            transfer.sent(count, now: Self.now)
            task.reportSent(count)
        case .response(let response): fail(task, transfer.received(response, task, now: Self.now))
        case .bytes(let data): fail(task, transfer.received(data, task, now: Self.now))
        case .measured(let metrics): transfer.measured = metrics
        case .continued: transfer.isContinued = true
        case .file(let file): fail(task, transfer.received(file))
        case .startOver:
            transfer.foundationHasEnded()
            task.confined.machine.restarted()
            load(transfer, task)
            if task.currentDemands.isPaused { applyDemands(task.currentDemands, task) }
        case .end(let error):
            transfer.foundationHasEnded()
            ended(error, transfer, task)
        }
        watchTime(of: task)
        grantSlots()
    }

    private func fail(_ task: URLSessionTransferTask, _ error: NetworkError?) {
        if let error { end(task, with: error) }
    }

    private func ended(_ error: (any Error)?, _ transfer: URLSessionTransfer, _ task: URLSessionTransferTask) {
        if let failure = transfer.failure(after: error, task) { return end(task, with: failure) }
        if let length = task.request.body.length, length > 0 { task.reportSent(length) }
        let metrics = transfer.metrics(of: task, now: Self.now)
        abandon(task)
        if let file = transfer.file { task.report(file) }
        task.report(.metrics(metrics))
        if task.confined.machine.transferEnded(withFailure: false, isHeldBack: task.isHeldBack) { finish(task, nil) }
    }
}

// Time limits.
extension URLSessionAdapter {
    /// Schedules the next check of the time limits, unless an earlier check is scheduled.
    private func watchTime(of task: URLSessionTransferTask) {
        task.confined.transfer?.deadlines.follow(task.currentDemands.pauses)
        guard let transfer = task.confined.transfer, let due = transfer.deadlines.next, due < transfer.watchedUntil
        else { return }
        transfer.watchedUntil = due
        transfer.timer?.cancel()
        let pause = Duration.nanoseconds(max(due - Self.now, 0))
        transfer.timer = SystemClock.shared.schedule(after: pause) {
            self.perform { self.lookAtTime(transfer, task) }
        }
    }

    private func lookAtTime(_ transfer: URLSessionTransfer, _ task: URLSessionTransferTask) {
        guard task.confined.transfer === transfer else { return }
        transfer.watchedUntil = .max
        // The task may have been paused a moment ago.
        transfer.deadlines.follow(task.currentDemands.pauses)
        if let limit = transfer.deadlines.exceeded(at: Self.now) {
            end(task, with: NetworkError(code: .timedOut, phase: transfer.phase, message: limit.message))
            grantSlots()
        } else {
            watchTime(of: task)
        }
    }
}

extension URLSessionAdapter {
    private struct Entry {
        weak var session: URLSession?
        let carrier: URLSessionAdapter
    }

    // Sessions cannot have additional properties on all systems, so a table contains the sessions that created tasks.
    private static let table = Locked<[ObjectIdentifier: Entry]>([:])

    /// Returns the adapter of a session, which is created at the first call.
    static func of(_ session: URLSession) -> URLSessionAdapter {
        let key = ObjectIdentifier(session)
        if let known = table.withLock({ $0[key].flatMap { $0.session === session ? $0.carrier : nil } }) {
            return known
        }
        let made = URLSessionAdapter(session)
        var left: [Entry] = []
        // Nothing else may hold a user's session that was read from the table, so it is released after the lock.
        var others: [URLSession] = []
        let carrier = table.withLock { table -> URLSessionAdapter in
            // Another thread may have been faster, or an earlier session may have had the same address.
            if let entry = table[key], entry.session === session { return entry.carrier }
            for (key, entry) in table {
                if let other = entry.session {
                    others.append(other)
                } else {
                    left.append(entry)
                    table[key] = nil
                }
            }
            table[key] = Entry(session: session, carrier: made)
            return made
        }
        extendLifetime(others)
        for entry in left { entry.carrier.rest() }
        return carrier
    }
}

/// A task of a `URLSession` that is used as a ``NetworkSession``.
package typealias URLSessionTransferTask = SessionTask<URLSessionAdapter>

extension URLSessionAdapter: TaskAdapter {
    package typealias Transfer = URLSessionTransfer

    package struct Extras {
        /// The session, which is kept alive for its tasks.
        var owner: URLSession?
        /// A task that the system already carries out, and for which this task waits.
        var existing: (any SystemTask)?
    }
}
