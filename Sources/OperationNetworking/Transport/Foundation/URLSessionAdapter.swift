// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Carries out the tasks that are made with one `URLSession`: whose turn it is, what Foundation is to do, what receivers
/// are told.
///
/// Everything happens on its queue. Foundation's own callbacks only put a note there, because on Linux hardly anything
/// may be called from where they come.
final class URLSessionAdapter: Sendable {
    /// How many bytes may come in although a brake is set, before the transfer is given up.
    static let maximumPendingBytes = 64 << 20

    // Sendable: what is not a constant is only used on `queue`.
    private let queue: DispatchQueue
    nonisolated(unsafe) var slots: SlotTable<URLSessionTransferTask>
    /// Those that were resumed and have not ended.
    private nonisolated(unsafe) var tasks: [ObjectIdentifier: URLSessionTransferTask] = [:]
    private let making = Locked(Making())
    private let maker: any URLSessionTaskMaking
    private let session: WeakSession
    /// Where bodies are written that cannot be sent as they are.
    private let folder: URL

    /// Whether Foundation's tasks may be made, and whether one is being made.
    private struct Making {
        var isClosed = false
        /// The thread that makes one; nil if there is none.
        var thread: pthread_t?
        /// The threads that close the session and wait until that task is made.
        var waiting: [DispatchSemaphore] = []
    }

    /// The user's session, unless it is gone.
    private struct WeakSession: @unchecked Sendable {
        // Sendable: written once.
        weak var session: URLSession?
    }

    init(_ session: URLSession) {
        queue = DispatchQueue(label: "OperationKit.URLSession", autoreleaseFrequency: .workItem)
        self.session = WeakSession(session: session)
        folder = FileManager.default.temporaryDirectory
        maker = URLSessionTaskMaker(session)
        let perHost = URLSessionTaskMaker.maximumPerHost(session)
        // Foundation looks names up on threads of its own, however many.
        slots = SlotTable(.init(perHost: perHost, total: .max, lookups: .max))
    }

    /// Makes the carrier of a session in which `maker` makes the tasks.
    init(_ maker: any URLSessionTaskMaking, on queue: DispatchQueue, spoolingInto folder: URL) {
        self.queue = queue
        self.maker = maker
        self.folder = folder
        session = WeakSession(session: nil)
        slots = SlotTable(.init(perHost: .max, total: .max, lookups: .max))
    }

    static var now: Int64 { Int64(clamping: DispatchTime.now().uptimeNanoseconds) }

    var now: Int64 { Self.now }

    func perform(_ work: @escaping @Sendable () -> Void) {
        queue.async(execute: work)
    }

    #if canImport(FoundationNetworking)
        /// A response set a cookie that nothing keeps.
        func noteLostCookies() { (maker as? URLSessionTaskMaker)?.noteLostCookies() }
    #endif

    /// There is something new with a task.
    func post(_ task: URLSessionTransferTask) {
        perform { self.visit(task) }
    }

    var isClosedNow: Bool { making.withLock { $0.isClosed } }

    /// Ends all tasks, and those to come.
    ///
    /// When it has returned, no task is made any more. If another thread is making a task, it waits until the task exists. A
    /// delegate may call it in `urlSession(_:didCreateTask:)`, because that task exists.
    func close() {
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

    /// Closes what is kept for the next request, for its session is gone.
    func rest() {
        perform { if self.tasks.isEmpty { self.maker.rest() } }
    }

    static var closed: NetworkError {
        NetworkError(code: .sessionClosed, phase: .waiting, message: "The session is closed. Make a new one.")
    }
}

// Tasks.
extension URLSessionAdapter {
    private func visit(_ task: URLSessionTransferTask) {
        let demands = task.takeDemands()
        if !demands.isCancelled {
            task.deliverPending()
            // Who set a brake or cancelled from within is coming by again.
            guard demands.isBraked || task.confined.pending.isEmpty else { return }
        }
        // One that had ended already before it was wanted is not remembered.
        if demands.isStarted, !task.confined.machine.isEnded { remember(task) }
        fulfil(demands, task)
        if demands.isStarted, isClosedNow { end(task, with: Self.closed) }
        watchTime(of: task)
        grantSlots()
    }

    private func remember(_ task: URLSessionTransferTask) {
        guard tasks.updateValue(task, forKey: ObjectIdentifier(task)) == nil else { return }
        task.confined.resumedAt = Self.now
        maker.wake()
    }

    /// Ends a task from outside, wherever it is.
    private func end(_ task: URLSessionTransferTask, with error: NetworkError) {
        guard !task.confined.machine.isEnded else { return }
        var error = error
        error.status = task.confined.transfer?.status
        let metrics = task.confined.transfer?.metrics(of: task, now: Self.now)
        leaveLine(task)
        abandon(task)
        task.dropPending()
        if let metrics { task.tell(.metrics(metrics)) }
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
                slots.release(grant.host, isAhead: grant.isAhead)
                continue
            }
            let transfer = URLSessionTransfer(
                task, host: grant.host, isAhead: grant.isAhead, isInBackground: maker.isInBackground, now: Self.now)
            task.confined.transfer = transfer
            load(transfer, task)
            let demands = task.currentDemands
            // A brake that was set when there was no transfer to heed it.
            if demands.isBraked { fulfil(demands, task) }
        }
    }

    /// Brings the body into a form in which Foundation sends it without harm.
    private func load(_ transfer: URLSessionTransfer, _ task: URLSessionTransferTask) {
        if let existing = exchange(&task.confined.extras.existing, with: nil) {
            return start(transfer, task, .none, existing)
        }
        switch URLSessionTransferBody(task.request.body, onlyFiles: maker.isInBackground) {
        case .ready(let body): start(transfer, task, body)
        case .toBeWritten:
            // A suspension would give up what was written, and a body that can be read once would be lost.
            if !task.request.body.canBeSentAgain { task.confined.machine.connected() }
            transfer.spool = BodySpool(task.request.body, into: folder) { result in
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
        case .success(let file): start(transfer, task, .temporary(file))
        case .failure(let error): end(task, with: error)
        }
        grantSlots()
    }

    private func start(
        _ transfer: URLSessionTransfer, _ task: URLSessionTransferTask, _ body: URLSessionTransferBody.Form,
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
            // Not within the loop that grants slots.
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

// What the machines of tasks ask for.
extension URLSessionAdapter: TaskHost {
    typealias Carrier = URLSessionAdapter

    /// Foundation looks them up as it likes.
    func line(of request: NetworkRequest) -> (name: String, isNumeric: Bool) { (request.origin.name, true) }

    func phase(of task: URLSessionTransferTask) -> NetworkError.Phase {
        task.confined.transfer?.phase ?? task.confined.machine.restingPhase
    }

    func abandon(_ task: URLSessionTransferTask) {
        guard let transfer = task.confined.transfer else { return }
        task.confined.transfer = nil
        transfer.stop()
        slots.release(transfer.host, isAhead: transfer.isAhead)
    }

    func apply(_ brakes: TaskMachine.Brakes, to task: URLSessionTransferTask) {
        task.confined.transfer?.apply(brakes)
    }

    func forget(_ task: URLSessionTransferTask) {
        tasks[ObjectIdentifier(task)] = nil
        task.confined.extras.owner = nil
        guard tasks.isEmpty else { return }
        // Nobody can ask for anything any more where the session went with its last task.
        if session.session == nil { maker.rest() } else { maker.idle { [weak self] in self?.rest() } }
    }
}

// What Foundation tells.
extension URLSessionAdapter {
    private func take(_ event: URLSessionEvent, _ transfer: URLSessionTransfer, _ task: URLSessionTransferTask) {
        // One that was cancelled is heard no more; its question about a redirect must not be answered.
        guard task.confined.transfer === transfer else { return }
        switch event {
        case .redirect(let refuse): refuse()
        case .refusedChallenge: transfer.isChallengeRefused = true
        case .sent(let count):
            transfer.sent(count, now: Self.now)
            task.tellSent(count)
        case .response(let response): fail(task, transfer.received(response, task, now: Self.now))
        case .bytes(let data): fail(task, transfer.received(data, task, now: Self.now))
        case .measured(let metrics): transfer.measured = metrics
        case .continued: transfer.isContinued = true
        case .file(let file): fail(task, transfer.received(file))
        case .startOver:
            transfer.foundationHasEnded()
            task.confined.machine.restarted()
            load(transfer, task)
            if task.currentDemands.isBraked { fulfil(task.currentDemands, task) }
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
        if let length = task.request.body.length, length > 0 { task.tellSent(length) }
        let metrics = transfer.metrics(of: task, now: Self.now)
        abandon(task)
        if let file = transfer.file { task.tell(file) }
        task.tell(.metrics(metrics))
        if task.confined.machine.transferEnded(withFailure: false, isHeldBack: task.isHeldBack) { finish(task, nil) }
    }
}

// Time.
extension URLSessionAdapter {
    /// Looks again when a limit of the transfer may be exceeded, unless that is seen to already.
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
        // It may be held back since a moment ago.
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

    // A session cannot be given a property on all systems, so there is a list of those that made tasks.
    private static let table = Locked<[ObjectIdentifier: Entry]>([:])

    /// The carrier of a session.
    static func of(_ session: URLSession) -> URLSessionAdapter {
        let key = ObjectIdentifier(session)
        if let known = table.withLock({ $0[key].flatMap { $0.session === session ? $0.carrier : nil } }) {
            return known
        }
        let made = URLSessionAdapter(session)
        var left: [Entry] = []
        // A session of the user's that is looked at may be nobody else's by then: it is freed after the lock.
        var others: [URLSession] = []
        let carrier = table.withLock { table -> URLSessionAdapter in
            // Another thread may have been faster; an older session may have had the same address.
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
        withExtendedLifetime(others) {}
        for entry in left { entry.carrier.rest() }
        return carrier
    }
}

/// A task of a `URLSession` as a ``NetworkSession``.
typealias URLSessionTransferTask = SessionTask<URLSessionAdapter>

extension URLSessionAdapter: TaskAdapter {
    typealias Transfer = URLSessionTransfer

    struct Extras {
        /// The session is kept for its tasks.
        var owner: URLSession?
        /// A task that the system carries out already, for which this one is to wait.
        var existing: (any SystemTask)?
    }
}
