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
final class URLSessionCarrier: Sendable {
    /// How many bytes may come in although a brake is set, before the transfer is given up.
    static let maximumPendingBytes = 64 << 20

    // Sendable: what is not a constant is only used on `queue`.
    private let queue: DispatchQueue
    nonisolated(unsafe) var slots: SlotTable<CarriedTask>
    /// Those that were resumed and have not ended.
    private nonisolated(unsafe) var tasks: [ObjectIdentifier: CarriedTask] = [:]
    /// Whether the session makes no more tasks.
    ///
    /// Foundation's task is made under this lock, so that none is made once `close()` has returned: in an invalidated
    /// session that raises an exception on Apple platforms, which ends the process.
    private let isClosed = Locked(false)
    private let maker: any URLSessionTaskMaking
    private let session: WeakSession
    /// Where bodies are written that cannot be sent as they are.
    private let folder: URL

    /// The user's session, unless it is gone.
    private struct WeakSession: @unchecked Sendable {
        // Sendable: written once.
        weak var session: URLSession?
    }

    init(_ session: URLSession) {
        queue = DispatchQueue(label: "OperationKit.URLSession")
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
    func post(_ task: CarriedTask) {
        perform { self.visit(task) }
    }

    var isClosedNow: Bool { isClosed.withLock { $0 } }

    /// Ends all tasks, and those to come.
    func close() {
        isClosed.withLock { $0 = true }
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
extension URLSessionCarrier {
    private func visit(_ task: CarriedTask) {
        let wishes = task.takeWishes()
        if !wishes.isCancelled {
            task.deliverPending()
            // Who set a brake or cancelled from within is coming by again.
            guard wishes.isBraked || task.confined.pending.isEmpty else { return }
        }
        // One that had ended already before it was wanted is not remembered.
        if wishes.isStarted, !task.confined.machine.isEnded { remember(task) }
        fulfil(wishes, task)
        if wishes.isStarted, isClosedNow { end(task, with: Self.closed) }
        watchTime(of: task)
        grantSlots()
    }

    private func remember(_ task: CarriedTask) {
        guard tasks.updateValue(task, forKey: ObjectIdentifier(task)) == nil else { return }
        task.confined.resumedAt = Self.now
        maker.wake()
    }

    /// Ends a task from outside, wherever it is.
    private func end(_ task: CarriedTask, with error: NetworkError) {
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
extension URLSessionCarrier {
    private func grantSlots() {
        while let grant = slots.next() {
            let task = grant.ticket
            guard takesSlot(task) else {
                slots.release(grant.host, isAhead: grant.isAhead)
                continue
            }
            let transfer = CarriedTransfer(
                task, host: grant.host, isAhead: grant.isAhead, isInBackground: maker.isInBackground, now: Self.now)
            task.confined.transfer = transfer
            load(transfer, task)
            let wishes = task.presentWishes
            // A brake that was set when there was no transfer to heed it.
            if wishes.isBraked { fulfil(wishes, task) }
        }
    }

    /// Brings the body into a form in which Foundation sends it without harm.
    private func load(_ transfer: CarriedTransfer, _ task: CarriedTask) {
        if let existing = exchange(&task.confined.extras.existing, with: nil) {
            return start(transfer, task, .none, existing)
        }
        switch CarriedBody(task.request.body, onlyFiles: maker.isInBackground) {
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
        _ result: Result<SpooledFile, NetworkError>, _ transfer: CarriedTransfer, _ task: CarriedTask
    ) {
        guard task.confined.transfer === transfer else { return }
        switch result {
        case .success(let file): start(transfer, task, .temporary(file))
        case .failure(let error): end(task, with: error)
        }
        grantSlots()
    }

    private func start(
        _ transfer: CarriedTransfer, _ task: CarriedTask, _ body: CarriedBody.Form,
        _ existing: (any SystemTask)? = nil
    ) {
        do throws(NetworkError) {
            try body.check()
            let work = try isClosed.withLock { isClosed throws(NetworkError) in
                guard !isClosed else { throw Self.closed }
                return try maker.makeWork(task.request, body, existing) { event in
                    self.perform { self.take(event, transfer, task) }
                }
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
}

// What the machines of tasks ask for.
extension URLSessionCarrier: TaskHost {
    typealias Carrier = URLSessionCarrier

    /// Foundation looks them up as it likes.
    func line(of request: NetworkRequest) -> (name: String, isNumeric: Bool) { (request.origin.name, true) }

    func phase(of task: CarriedTask) -> NetworkError.Phase {
        task.confined.transfer?.phase ?? task.confined.machine.restingPhase
    }

    func abandon(_ task: CarriedTask) {
        guard let transfer = task.confined.transfer else { return }
        task.confined.transfer = nil
        transfer.stop()
        slots.release(transfer.host, isAhead: transfer.isAhead)
    }

    func apply(_ brakes: TaskMachine.Brakes, to task: CarriedTask) {
        task.confined.transfer?.apply(brakes)
    }

    func forget(_ task: CarriedTask) {
        tasks[ObjectIdentifier(task)] = nil
        task.confined.extras.owner = nil
        guard tasks.isEmpty else { return }
        // Nobody can ask for anything any more where the session went with its last task.
        if session.session == nil { maker.rest() } else { maker.idle { [weak self] in self?.rest() } }
    }
}

// What Foundation tells.
extension URLSessionCarrier {
    private func take(_ event: URLSessionEvent, _ transfer: CarriedTransfer, _ task: CarriedTask) {
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
            if task.presentWishes.isBraked { fulfil(task.presentWishes, task) }
        case .end(let error):
            transfer.foundationHasEnded()
            ended(error, transfer, task)
        }
        watchTime(of: task)
        grantSlots()
    }

    private func fail(_ task: CarriedTask, _ error: NetworkError?) {
        if let error { end(task, with: error) }
    }

    private func ended(_ error: (any Error)?, _ transfer: CarriedTransfer, _ task: CarriedTask) {
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
extension URLSessionCarrier {
    /// Looks again when a limit of the transfer may be exceeded, unless that is seen to already.
    private func watchTime(of task: CarriedTask) {
        task.confined.transfer?.deadlines.follow(task.presentWishes.pauses)
        guard let transfer = task.confined.transfer, let due = transfer.deadlines.next, due < transfer.watchedUntil
        else { return }
        transfer.watchedUntil = due
        transfer.timer?.cancel()
        let pause = Duration.nanoseconds(max(due - Self.now, 0))
        transfer.timer = SystemClock.shared.schedule(after: pause) {
            self.perform { self.lookAtTime(transfer, task) }
        }
    }

    private func lookAtTime(_ transfer: CarriedTransfer, _ task: CarriedTask) {
        guard task.confined.transfer === transfer else { return }
        transfer.watchedUntil = .max
        // It may be held back since a moment ago.
        transfer.deadlines.follow(task.presentWishes.pauses)
        if let limit = transfer.deadlines.exceeded(at: Self.now) {
            end(task, with: NetworkError(code: .timedOut, phase: transfer.phase, message: limit.message))
            grantSlots()
        } else {
            watchTime(of: task)
        }
    }
}
