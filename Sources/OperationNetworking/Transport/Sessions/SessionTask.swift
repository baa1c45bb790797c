// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A task of a session of ours: the mailbox between those who have the task and the thread of its session.
///
/// Any thread says what is wanted, and the session comes by for it; what the session has to tell goes to the receiver, or
/// waits here for as long as there is a brake.
package final class SessionTask<Carrier: TaskAdapter>: OrderedTask {
    /// What only the thread of the session touches; after its end, only who ends the task in its place.
    package struct Confined {
        package fileprivate(set) var receiver: (any NetworkReceiver)?
        package var machine = TaskMachine()
        package var transfer: Carrier.Transfer?
        package var place: SlotTable<SessionTask>.Place?
        /// What is told later, because the receiver or the user has set a brake.
        package fileprivate(set) var pending = Fifo<TaskEvent>()
        package fileprivate(set) var pendingBytes = 0
        package var resumedAt: Int64 = 0
        /// Whether the request may have been sent, over whichever connection: then it is not unsent any more.
        package var wasSent = false
        /// How many bytes of the request's body were sent, and how many of them the receiver was told of.
        package fileprivate(set) var sent: Int64 = 0
        fileprivate var toldSent: Int64 = 0
        /// Why a body could not be read to its end while it was told.
        fileprivate var readFailure: NetworkError?
        package var extras: Carrier.Extras
    }

    /// Whether the receiver may be told something.
    package enum Permission {
        case go
        case keep
        case drop
    }

    package let request: NetworkRequest
    private let carrier: Carrier
    private let wishes = Locked(TaskDemands())
    // Sendable: see `Confined`; the carrier passes the task from thread to thread.
    package nonisolated(unsafe) var confined: Confined

    package init(
        _ request: NetworkRequest, _ receiver: any NetworkReceiver, _ carrier: Carrier, _ extras: Carrier.Extras
    ) {
        self.request = request
        self.carrier = carrier
        confined = Confined(receiver: receiver, extras: extras)
    }

    package func resume() { brake { $0.resume(at: $1) } }
    package func suspend() { brake { $0.suspend(at: $1) } }
    package func cancel() { post(wishes.withLock { $0.cancel() }) }
    package func hold() { brake { $0.hold(at: $1) } }
    package func proceed() { brake { $0.proceed(at: $1) } }
    package func obey(_ order: BrakeOrder) { brake { $0.obey(order, at: $1) } }
    package func bodyIsReady() { post(wishes.withLock { $0.bodyIsReady() }) }

    /// The moment is the one of the call: no limit runs from then on, however late the session comes by.
    private func brake(_ wish: (inout TaskDemands, Int64) -> Bool) {
        let now = carrier.now
        post(wishes.withLock { wish(&$0, now) })
    }

    private func post(_ isNews: Bool) {
        if isNews { carrier.post(self) }
    }

    /// What is wanted now; from now on, news are posted again.
    package func takeWishes() -> TaskDemands { wishes.withLock { $0.take() } }

    /// What is wanted now; news that were posted stay so.
    package var presentWishes: TaskDemands { wishes.withLock { $0 } }

    package var isCancelled: Bool { wishes.withLock { $0.isCancelled } }
}

// What the receiver is told. On the thread of the session.
extension SessionTask {
    /// Whether the receiver still wants the request to be sent.
    package var mayLeave: Bool { confined.receiver?.taskMayLeave(self) ?? true }

    /// Whether something is still to be told, before which nothing else may be.
    private var hasRest: Bool { !confined.pending.isEmpty || confined.sent > confined.toldSent }

    /// Whether the receiver may be told something that came in.
    package var permission: Permission {
        let wishes = presentWishes
        return wishes.isCancelled ? .drop : wishes.isBraked || hasRest ? .keep : .go
    }

    /// Whether something waits to be told before the end may be.
    package var isHeldBack: Bool { hasRest || presentWishes.isBraked }

    /// Tells it now, or later if there is a brake.
    package func tell(_ event: TaskEvent) {
        switch permission {
        case .go: deliver(event)
        case .keep:
            confined.pendingBytes += event.byteCount
            confined.pending.append(event)
        case .drop: break
        }
    }

    /// Tells the bytes of a file, now or later, a part at a time.
    package func tell(_ file: SpooledFile.Reader) {
        guard permission != .drop else { return }
        confined.pending.append(.file(file))
        deliverPending()
    }

    /// Tells of the bytes that were sent, if they are more than before: later if the task is suspended, unless they were
    /// being taken when that was said.
    package func tellSent(_ count: Int64, wasUnderWay: Bool = false) {
        let count = min(count, request.body.length ?? .max)
        guard count > confined.sent else { return }
        confined.sent = count
        deliverSent(evenIfSuspended: wasUnderWay)
    }

    private func deliverSent(evenIfSuspended: Bool = false) {
        guard confined.sent > confined.toldSent else { return }
        let wishes = presentWishes
        guard !wishes.isCancelled, evenIfSuspended || !wishes.isSuspended else { return }
        confined.toldSent = confined.sent
        confined.receiver?.task(self, didSend: confined.sent, of: request.body.length)
    }

    /// Tells what was kept, until the next brake.
    package func deliverPending() {
        deliverSent()
        while !confined.pending.isEmpty {
            let wishes = presentWishes
            guard !wishes.isCancelled, !wishes.isBraked else { return }
            if case .file(let file)? = confined.pending.first, deliverPart(of: file) { continue }
            guard let event = confined.pending.popFirst() else { return }
            confined.pendingBytes -= event.byteCount
            deliver(event)
        }
    }

    /// Tells the next part of a file; false if there is none.
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

    /// What was kept is told to nobody any more.
    package func dropPending() {
        confined.pending = Fifo()
        confined.pendingBytes = 0
        confined.toldSent = confined.sent
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

    /// Tells the end, or the cancel that came before it, and lets go of the receiver.
    package func tellEnd(_ error: NetworkError?) {
        var error = error ?? confined.readFailure
        if !wishes.withLock({ $0.end(asCancelled: false) }) {
            guard wishes.withLock({ $0.end(asCancelled: true) }) else { return }
            error = NetworkError(
                code: .cancelled, phase: error?.phase ?? .receiving, message: "The request was cancelled.")
        }
        error?.request = request.summary
        // Over another connection than the last one, perhaps.
        if confined.wasSent { error?.isUnsent = false }
        dropPending()
        let receiver = confined.receiver
        confined.receiver = nil
        receiver?.task(self, didEndWith: error)
    }
}

/// The thread of a session, as the machines of its tasks see it: what they ask for is done here, the same way for every
/// session.
package protocol TaskHost: AnyObject {
    associatedtype Carrier: TaskAdapter

    /// The lines in which tasks wait for their turns.
    var slots: SlotTable<SessionTask<Carrier>> { get set }
    /// In which line a request waits, and whether no name must be looked up for it, as far as slots are to heed that.
    func line(of request: NetworkRequest) -> (name: String, isNumeric: Bool)

    /// How far the task has come.
    func phase(of task: SessionTask<Carrier>) -> NetworkError.Phase
    /// Takes the transfer away from the task, if it has one, and gives it up.
    func abandon(_ task: SessionTask<Carrier>)
    /// Brings the transfer of the task to what is to be held back.
    func apply(_ brakes: TaskMachine.Brakes, to task: SessionTask<Carrier>)
    /// The task has told its end, and need not be known any more.
    func forget(_ task: SessionTask<Carrier>)
}

extension TaskHost {
    /// Brings the task to what is wanted of it.
    package func fulfil(_ wishes: TaskDemands, _ task: SessionTask<Carrier>) {
        let phase = phase(of: task)
        switch task.confined.machine.wish(wishes) {
        case .none: break
        case .enterLine:
            let line = line(of: task.request)
            task.confined.place = slots.enter(
                task, host: line.name, isNumeric: line.isNumeric, priority: task.request.options.priority,
                isAhead: task.request.options.isAhead)
        case .leaveLine: leaveLine(task)
        case .abandon: abandon(task)
        case .brake(let brakes): apply(brakes, to: task)
        case .tellRest:
            task.deliverPending()
            if task.confined.machine.restTold(isHeldBack: task.isHeldBack) { finish(task, nil) }
        case .cancel(let holding):
            if holding == .place { leaveLine(task) }
            if holding == .transfer { abandon(task) }
            finish(task, NetworkError(code: .cancelled, phase: phase, message: "The request was cancelled."))
        }
    }

    /// Gives a task the slot that it waited for; false if it does not want it now, be it for a word that has not come by yet,
    /// or because its receiver takes it back.
    package func takesSlot(_ task: SessionTask<Carrier>) -> Bool {
        task.confined.place = nil
        var wishes = task.presentWishes
        if !wishes.isSuspended, !wishes.isCancelled {
            if task.mayLeave { return task.confined.machine.granted() }
            task.cancel()
            wishes = task.presentWishes
        }
        // Its place is gone, and so it must be heeded what was found: by now it may be resumed again, and would then wait for
        // ever. The word of that comes by later.
        fulfil(wishes, task)
        return false
    }

    package func leaveLine(_ task: SessionTask<Carrier>) {
        if let place = task.confined.place { _ = slots.leave(place) }
        task.confined.place = nil
    }

    /// Tells the end and forgets the task.
    package func finish(_ task: SessionTask<Carrier>, _ error: NetworkError?) {
        task.tellEnd(error)
        forget(task)
    }
}

/// What carries out the tasks of a session, on a thread or queue of its own.
package protocol TaskAdapter: AnyObject, Sendable {
    /// What carries one task out while it has a slot.
    associatedtype Transfer
    /// What tasks have here and nowhere else, on that thread.
    associatedtype Extras

    /// Nanoseconds of the clock that its time limits go by.
    var now: Int64 { get }
    /// From any thread: there is something new with the task.
    func post(_ task: SessionTask<Self>)
}

/// What a session tells of a task before its end, and may have to keep for a while.
package enum TaskEvent {
    case informational(ResponseHead)
    case head(ResponseHead)
    case bytes(Data)
    /// A body in a file, which is read as the receiver takes it.
    case file(SpooledFile.Reader)
    case trailers(HeaderFields)
    case metrics(TransferMetrics)

    /// How many bytes of a body it keeps.
    var byteCount: Int {
        if case .bytes(let data) = self { data.count } else { 0 }
    }
}

/// What those who have a task want of it, gathered by any thread until the session's thread comes by.
///
/// Only the last word counts, so that a thousand calls are one visit.
package struct TaskDemands: Sendable {
    package private(set) var isStarted = false
    package private(set) var isSuspended = false
    package private(set) var isHeld = false
    package private(set) var isCancelled = false
    package private(set) var isBodyReady = false
    /// How long nothing was to be told.
    package private(set) var pauses = PauseClock()
    private var isPosted = false
    private var isEnded = false
    /// The number of the last order that was obeyed.
    private var obeyed = Int.min

    package init() {}

    /// Whether nothing is to be told at present.
    package var isBraked: Bool { isSuspended || isHeld }

    /// Each returns whether the session is to be told that there is something new.
    package mutating func resume(at now: Int64) -> Bool {
        brake(at: now) {
            $0.isStarted = true; $0.isSuspended = false
        }
    }
    package mutating func suspend(at now: Int64) -> Bool { brake(at: now) { $0.isSuspended = true } }
    package mutating func cancel() -> Bool { wish { $0.isCancelled = true } }
    package mutating func hold(at now: Int64) -> Bool { brake(at: now) { $0.isHeld = true } }
    package mutating func proceed(at now: Int64) -> Bool { brake(at: now) { $0.isHeld = false } }
    package mutating func bodyIsReady() -> Bool { wish { $0.isBodyReady = true } }
    package mutating func obey(_ order: BrakeOrder, at now: Int64) -> Bool {
        guard order.number > obeyed else { return false }
        obeyed = order.number
        return brake(at: now) {
            $0.isStarted = $0.isStarted || !order.isSuspended
            $0.isSuspended = order.isSuspended
            if let isHeld = order.isHeld { $0.isHeld = isHeld }
        }
    }

    private mutating func brake(at now: Int64, _ change: (inout TaskDemands) -> Void) -> Bool {
        wish {
            change(&$0)
            $0.pauses.set($0.isBraked, at: now)
        }
    }

    private mutating func wish(_ change: (inout TaskDemands) -> Void) -> Bool {
        guard !isEnded else { return false }
        let before = (isStarted, isSuspended, isHeld, isCancelled, isBodyReady)
        change(&self)
        guard before != (isStarted, isSuspended, isHeld, isCancelled, isBodyReady), !isPosted else { return false }
        // What only concerns a task that nobody started yet waits for the start.
        guard isStarted || isCancelled else { return false }
        isPosted = true
        return true
    }

    /// The session has come by: what is wanted now.
    package mutating func take() -> TaskDemands {
        isPosted = false
        defer { isBodyReady = false }
        return self
    }

    /// The end is decided: false if a cancel came first, or another end.
    package mutating func end(asCancelled: Bool) -> Bool {
        guard !isEnded, asCancelled || !isCancelled else { return false }
        isEnded = true
        return true
    }
}

/// The body of a request on its way out: opened when it is first asked for, and anew when it must be sent again.
package struct BodyOutlet {
    private enum State {
        case closed
        case open(BodyReader)
    }

    private let body: RequestBody
    private var state = State.closed
    /// How many bytes were given since it was opened.
    package private(set) var count: Int64 = 0

    package init(_ body: RequestBody) {
        self.body = body
    }

    package var isOpen: Bool {
        if case .open = state { true } else { false }
    }

    /// Whether all of it was given; nil if it was not opened.
    package var isComplete: Bool? {
        if case .open(let reader) = state { reader.isComplete } else { nil }
    }

    /// Fills a part of the buffer.
    ///
    /// - Parameter waker: Wakes the transfer when there is more, if there was nothing.
    package mutating func read(
        into buffer: UnsafeMutableRawBufferPointer, waker: () -> BodyWaker
    ) throws(NetworkError) -> BodyPortion {
        let portion = try opened(waker).read(into: buffer)
        if case .bytes(let given) = portion { count += Int64(given) }
        return portion
    }

    private mutating func opened(_ waker: () -> BodyWaker) throws(NetworkError) -> BodyReader {
        if case .open(let reader) = state { return reader }
        let reader = try BodyReader(body, waker: waker())
        state = .open(reader)
        return reader
    }

    /// Goes back to its beginning.
    package mutating func rewind() {
        state = .closed
        count = 0
    }
}
