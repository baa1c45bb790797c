// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A task of a session of this package, which connects the users of the task with the thread of its session.
///
/// Any thread can change the demands on the task, and the thread of the session applies them. Events go to the
/// receiver, or wait in the task while delivery is paused.
package final class SessionTask<Carrier: TaskAdapter>: OrderedTask {
    /// The state that only the thread of the session uses or, if there is no such thread, the thread that ends the
    /// task.
    package struct Confined {
        package fileprivate(set) var receiver: (any NetworkReceiver)?
        package var machine = TaskMachine()
        package var transfer: Carrier.Transfer?
        package var place: SlotTable<SessionTask>.Place?
        /// The events that wait because the receiver or the user has paused delivery.
        package fileprivate(set) var pending = Fifo<TaskEvent>()
        package fileprivate(set) var pendingBytes = 0
        package var resumedAt: Int64 = 0
        /// Whether the request may have been sent over any connection, so that it no longer counts as unsent.
        package var wasSent = false
        /// The number of body bytes that were sent, and the number that was reported to the receiver.
        package fileprivate(set) var sent: Int64 = 0
        fileprivate var reportedSent: Int64 = 0
        /// The error that occurred while a body was read for its delivery.
        fileprivate var readFailure: NetworkError?
        package var extras: Carrier.Extras
    }

    /// A decision about an event for the receiver.
    package enum Permission {
        case go
        case keep
        case drop
    }

    package let request: NetworkRequest
    private let carrier: Carrier
    private let demands = Locked(TaskDemands())
    // Sendable: see `Confined`. The carrier passes the task from thread to thread. No two accesses overlap.
    @exclusivity(unchecked) package nonisolated(unsafe) var confined: Confined

    package init(
        _ request: NetworkRequest, _ receiver: any NetworkReceiver, _ carrier: Carrier, _ extras: Carrier.Extras
    ) {
        self.request = request
        self.carrier = carrier
        confined = Confined(receiver: receiver, extras: extras)
    }

    package func resume() { change { $0.resume(at: $1) } }
    package func suspend() { change { $0.suspend(at: $1) } }
    package func cancel() { change { demands, _ in demands.cancel() } }
    package func hold() { change { $0.hold(at: $1) } }
    package func proceed() { change { $0.proceed(at: $1) } }
    package func follow(_ order: PauseOrder) { change { $0.follow(order, at: $1) } }
    package func bodyIsReady() { change { demands, _ in demands.bodyIsReady() } }

    /// Changes the demands at the time of the call, and notifies the session.
    ///
    /// No limit runs from the beginning of a pause on, however late the session applies the pause.
    private func change(_ change: (inout TaskDemands, Int64) -> Bool) {
        let now = carrier.now
        if demands.withLock({ change(&$0, now) }) { carrier.post(self) }
    }

    /// Returns the present demands, and allows the next change to notify the session again.
    package func takeDemands() -> TaskDemands { demands.withLock { $0.take() } }

    /// The present demands, without any effect on notifications.
    package var currentDemands: TaskDemands { demands.withLock { $0 } }

    package var isCancelled: Bool { demands.withLock { $0.isCancelled } }
}

// Events for the receiver, on the thread of the session.
extension SessionTask {
    /// Whether the receiver still wants the request to be sent.
    package var maySend: Bool { confined.receiver?.taskMaySend(self) ?? true }

    /// Whether events wait, which must be delivered before any other event.
    private var hasRest: Bool { !confined.pending.isEmpty || confined.sent > confined.reportedSent }

    /// The decision about an event that has just arrived.
    package var permission: Permission {
        let demands = currentDemands
        return demands.isCancelled ? .drop : demands.isPaused || hasRest ? .keep : .go
    }

    /// Whether the end must wait, because other events come first or the task is paused.
    package var isHeldBack: Bool { hasRest || currentDemands.isPaused }

    /// Delivers an event now, or later if delivery is paused.
    package func report(_ event: TaskEvent) {
        switch permission {
        case .go: deliver(event)
        case .keep:
            confined.pendingBytes += event.byteCount
            confined.pending.append(event)
        case .drop: break
        }
    }

    /// Delivers the bytes of a file in portions, now or later.
    package func report(_ file: SpooledFile.Reader) {
        guard permission != .drop else { return }
        confined.pending.append(.file(file))
        deliverPending()
    }

    /// Reports the number of sent bytes if it has increased.
    ///
    /// If the task is suspended, the report waits, unless the bytes were already being taken at the time of the
    /// suspension.
    package func reportSent(_ count: Int64, wasUnderWay: Bool = false) {
        guard count > confined.sent else { return }
        confined.sent = min(count, request.body.length ?? .max)
        deliverSent(evenIfSuspended: wasUnderWay)
    }

    private func deliverSent(evenIfSuspended: Bool = false) {
        guard confined.sent > confined.reportedSent else { return }
        let demands = currentDemands
        guard !demands.isCancelled, evenIfSuspended || !demands.isSuspended else { return }
        confined.reportedSent = confined.sent
        confined.receiver?.task(self, didSend: confined.sent, of: request.body.length)
    }

    /// Delivers the events that wait, until delivery is paused.
    package func deliverPending() {
        deliverSent()
        while !confined.pending.isEmpty {
            let demands = currentDemands
            guard !demands.isCancelled, !demands.isPaused else { return }
            if case .file(let file)? = confined.pending.first, deliverPart(of: file) { continue }
            guard let event = confined.pending.popFirst() else { return }
            confined.pendingBytes -= event.byteCount
            deliver(event)
        }
    }

    /// Delivers the next portion of a file, and returns `false` if there is none.
    private func deliverPart(of file: SpooledFile.Reader) -> Bool {
        do throws(NetworkError) {
            guard let data = try file.read() else { return false }
            data.withUnsafeBytes { confined.receiver?.task(self, didReceive: $0) }
            return true
        } catch {
            confined.readFailure = error
            return false
        }
    }

    /// Removes the events that wait.
    package func dropPending() {
        confined.pending = Fifo()
        confined.pendingBytes = 0
        confined.reportedSent = confined.sent
    }

    private func deliver(_ event: TaskEvent) {
        guard let receiver = confined.receiver else { return }
        switch event {
        case .informational(let head): receiver.task(self, didReceiveInformational: head)
        case .head(let head): receiver.task(self, didReceive: head)
        case .bytes(let data): data.withUnsafeBytes { receiver.task(self, didReceive: $0) }
        case .file: break
        case .trailers(let fields): receiver.task(self, didReceiveTrailers: fields)
        case .metrics(let metrics): receiver.task(self, didCollect: metrics)
        }
    }

    /// Reports the end, or a cancellation that came before it, and releases the receiver.
    package func reportEnd(_ error: NetworkError?) {
        guard let isCancelled = demands.withLock({ $0.end() }) else { return }
        var error = error ?? confined.readFailure
        if isCancelled {
            error = NetworkError(
                code: .cancelled, phase: error?.phase ?? .receiving, message: "The request was canceled.")
        }
        error?.request = request.summary
        // An earlier connection may have sent the request.
        if confined.wasSent { error?.isUnsent = false }
        dropPending()
        let receiver = confined.receiver
        confined.receiver = nil
        receiver?.task(self, didEndWith: error)
    }
}

/// The thread of a session, which performs the actions of its tasks' state machines in the same way for every session.
package protocol TaskHost: AnyObject {
    associatedtype Carrier: TaskAdapter

    /// The queues in which tasks wait for slots.
    var slots: SlotTable<SessionTask<Carrier>> { get set }
    /// Returns the queue in which a request waits, and whether the slots can ignore the lookup of its host name.
    func line(of request: NetworkRequest) -> (name: String, isNumeric: Bool)

    /// Returns the phase of a task.
    func phase(of task: SessionTask<Carrier>) -> NetworkError.Phase
    /// Takes the transfer from a task, if it has one, and abandons it.
    func abandon(_ task: SessionTask<Carrier>)
    /// Applies pauses to the transfer of a task.
    func apply(_ pausedDirections: TaskMachine.PausedDirections, to task: SessionTask<Carrier>)
    /// Removes a task whose end was reported.
    func forget(_ task: SessionTask<Carrier>)
}

extension TaskHost {
    /// Applies demands to a task.
    package func applyDemands(_ demands: TaskDemands, _ task: SessionTask<Carrier>) {
        // The machine no longer knows the phase after it has applied a cancellation.
        let phase = demands.isCancelled ? phase(of: task) : nil
        switch task.confined.machine.apply(demands) {
        case .none: break
        case .enterQueue:
            let line = line(of: task.request)
            task.confined.place = slots.enter(
                task, host: line.name, isNumeric: line.isNumeric, priority: task.request.options.priority,
                isAhead: task.request.options.isAhead)
        case .leaveQueue: leaveQueue(task)
        case .abandon: abandon(task)
        case .pause(let pausedDirections): apply(pausedDirections, to: task)
        case .deliverRest:
            task.deliverPending()
            if task.confined.machine.restDelivered(isHeldBack: task.isHeldBack) { finish(task, nil) }
        case .cancel:
            leaveQueue(task)
            abandon(task)
            finish(
                task, NetworkError(code: .cancelled, phase: phase ?? .waiting, message: "The request was canceled."))
        }
    }

    /// Gives a task the slot for which it waited, and returns `false` if the task does not want the slot now.
    ///
    /// The task may have new demands, or its receiver may withdraw the request.
    package func takesSlot(_ task: SessionTask<Carrier>) -> Bool {
        task.confined.place = nil
        var demands = task.currentDemands
        if !demands.isSuspended, !demands.isCancelled {
            if task.maySend { return task.confined.machine.granted() }
            task.cancel()
            demands = task.currentDemands
        }
        // The task has left the queue, so the demands that were read must be applied. If it was resumed since then, it
        // would otherwise wait forever. The session applies that newer demand later.
        applyDemands(demands, task)
        return false
    }

    package func leaveQueue(_ task: SessionTask<Carrier>) {
        if let place = task.confined.place { _ = slots.leave(place) }
        task.confined.place = nil
    }

    /// Reports the end and removes the task.
    package func finish(_ task: SessionTask<Carrier>, _ error: NetworkError?) {
        task.reportEnd(error)
        forget(task)
    }
}

/// An object that passes the changed demands on tasks to the thread or queue of a session, and provides its clock.
package protocol TaskAdapter: AnyObject, Sendable {
    /// The transfer of a task, which exists while the task has a slot.
    associatedtype Transfer
    /// The additional state of a task, which is only used on that thread or queue.
    associatedtype Extras

    /// The time in nanoseconds, on the clock of the time limits.
    var now: Int64 { get }
    /// Notifies the session, from any thread, that the demands on a task changed.
    func post(_ task: SessionTask<Self>)
}

/// An event of a task other than its end, whose delivery may have to wait.
package enum TaskEvent {
    case informational(ResponseHead)
    case head(ResponseHead)
    case bytes(Data)
    /// A body in a file, which is read as fast as the receiver takes it.
    case file(SpooledFile.Reader)
    case trailers(HeaderFields)
    case metrics(TransferMetrics)

    /// The number of body bytes that the event keeps in memory.
    var byteCount: Int {
        if case .bytes(let data) = self { data.count } else { 0 }
    }
}

/// The demands on a task, which any thread can change and the thread of the session applies.
///
/// Only the latest demands count, so that a thousand calls lead to one visit of the session.
package struct TaskDemands: Sendable {
    package private(set) var isStarted = false
    package private(set) var isSuspended = false
    package private(set) var isHeld = false
    package private(set) var isCancelled = false
    package private(set) var isBodyReady = false
    /// The time for which no events could be delivered.
    package private(set) var pauses = PauseClock()
    private var isPosted = false
    private var isEnded = false
    /// The number of the last order that was followed.
    private var lastFollowed = Int.min

    package init() {}

    /// Whether no events can be delivered at present.
    package var isPaused: Bool { isSuspended || isHeld }

    /// Resumes the task, and returns whether to notify the session, as each of the following methods does.
    package mutating func resume(at now: Int64) -> Bool {
        change(at: now) { ($0.isStarted, $0.isSuspended) = (true, false) }
    }
    package mutating func suspend(at now: Int64) -> Bool { change(at: now) { $0.isSuspended = true } }
    package mutating func cancel() -> Bool { change { $0.isCancelled = true } }
    package mutating func hold(at now: Int64) -> Bool { change(at: now) { $0.isHeld = true } }
    package mutating func proceed(at now: Int64) -> Bool { change(at: now) { $0.isHeld = false } }
    package mutating func bodyIsReady() -> Bool { change { $0.isBodyReady = true } }
    package mutating func follow(_ order: PauseOrder, at now: Int64) -> Bool {
        guard order.number > lastFollowed else { return false }
        lastFollowed = order.number
        return change(at: now) {
            if !order.isSuspended { $0.isStarted = true }
            $0.isSuspended = order.isSuspended
            if let isHeld = order.isHeld { $0.isHeld = isHeld }
        }
    }

    /// - Parameter now: The time of a change that may begin or end a pause.
    private mutating func change(at now: Int64? = nil, _ body: (inout TaskDemands) -> Void) -> Bool {
        guard !isEnded else { return false }
        let before = (isStarted, isSuspended, isHeld, isCancelled, isBodyReady)
        body(&self)
        if let now { pauses.set(isPaused, at: now) }
        guard before != (isStarted, isSuspended, isHeld, isCancelled, isBodyReady), !isPosted else { return false }
        // A change of a task that was not started waits for the start.
        guard isStarted || isCancelled else { return false }
        isPosted = true
        return true
    }

    /// Returns the demands for the session to apply, and allows the next change to notify the session again.
    package mutating func take() -> TaskDemands {
        isPosted = false
        defer { isBodyReady = false }
        return self
    }

    /// Decides the end, and returns whether a cancellation came first, or returns `nil` if another end came first.
    package mutating func end() -> Bool? {
        guard !isEnded else { return nil }
        isEnded = true
        return isCancelled
    }
}

/// The body of a request, which is opened when it is first read, and again when it must be sent again.
package struct BodyOutlet {
    private let body: RequestBody
    /// The reader, or `nil` if the body is not open.
    private var reader: BodyReader?
    /// The number of bytes that were read since the body was opened.
    package private(set) var count: Int64 = 0

    package init(_ body: RequestBody) {
        self.body = body
    }

    package var isOpen: Bool { reader != nil }

    /// Whether all bytes were read, or `nil` if the body was not opened.
    package var isComplete: Bool? { reader?.isComplete }

    /// Reads the next bytes into a buffer.
    ///
    /// - Parameter waker: Creates the object that wakes the transfer when more bytes are available.
    package mutating func read(
        into buffer: UnsafeMutableRawBufferPointer, waker: () -> BodyWaker
    ) throws(NetworkError) -> BodyPortion {
        let portion = try opened(waker).read(into: buffer)
        if case .bytes(let given) = portion { count += Int64(given) }
        return portion
    }

    private mutating func opened(_ waker: () -> BodyWaker) throws(NetworkError) -> BodyReader {
        if let reader { return reader }
        let reader = try BodyReader(body, waker: waker())
        self.reader = reader
        return reader
    }

    /// Returns to the beginning of the body.
    package mutating func rewind() {
        reader = nil
        count = 0
    }
}

/// The work that the thread of a session defers while it is busy, so that it wakes another thread less often.
///
/// A busy session ends one task after another. The thread that handles these ends is woken once for several of them.
///
/// The object is not `Sendable`, because each thread of a session has its own.
package final class SessionDeferredWork {
    /// The maximum delay in nanoseconds.
    private static let maximumDelay: Int64 = 100_000

    private var items: [() -> Void] = []
    /// The objects for which work is deferred only once.
    private var owners: [ObjectIdentifier] = []
    /// The time at which the oldest work must be done.
    private var due: Int64 = 0
    private let now: () -> Int64

    /// Creates the object of the calling thread, which alone may use and release it.
    ///
    /// - Parameter now: Returns the time of a clock in nanoseconds.
    package init(now: @escaping () -> Int64) {
        self.now = now
        pthread_setspecific(Self.key, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit { pthread_setspecific(Self.key, nil) }

    /// The object of the calling thread, or `nil` if the thread is not that of a session.
    package static var current: SessionDeferredWork? {
        guard let object = pthread_getspecific(key) else { return nil }
        return Unmanaged<SessionDeferredWork>.fromOpaque(object).takeUnretainedValue()
    }

    /// Whether any work was deferred.
    package var hasItems: Bool { !items.isEmpty }

    /// Defers work until the thread has nothing else to do.
    package func deferWork(_ work: @escaping () -> Void) {
        if items.isEmpty { due = now() + Self.maximumDelay }
        items.append(work)
    }

    /// Defers work in the same way, unless work for the same object is already deferred.
    ///
    /// - Parameters:
    ///   - owner: The object for which the work is done, and which the work keeps alive.
    ///   - work: The work.
    package func deferWork(for owner: AnyObject, _ work: @escaping () -> Void) {
        let owner = ObjectIdentifier(owner)
        guard !owners.contains(owner) else { return }
        owners.append(owner)
        deferWork(work)
    }

    /// Does the deferred work if it was delayed for too long.
    package func performIfDue() {
        if hasItems, now() >= due { performAll() }
    }

    /// Does the deferred work, also work that is deferred in the meantime.
    ///
    /// The thread of a closed session has no later turn in which it could do such work.
    package func performAll() {
        while hasItems {
            owners = []
            for work in exchange(&items, with: []) { work() }
        }
    }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()
}
