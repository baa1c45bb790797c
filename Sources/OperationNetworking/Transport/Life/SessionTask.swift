// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A task of a session of ours: the mailbox between those who have the task and the thread of its session.
///
/// Any thread says what is wanted, and the session comes by for it; what the session has to tell goes to the receiver, or
/// waits here for as long as there is a brake.
package final class SessionTask<Carrier: TaskCarrier>: OrderedTask {
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
    private let wishes = Locked(TaskWishes())
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
    private func brake(_ wish: (inout TaskWishes, Int64) -> Bool) {
        let now = carrier.now
        post(wishes.withLock { wish(&$0, now) })
    }

    private func post(_ isNews: Bool) {
        if isNews { carrier.post(self) }
    }

    /// What is wanted now; from now on, news are posted again.
    package func takeWishes() -> TaskWishes { wishes.withLock { $0.take() } }

    /// What is wanted now; news that were posted stay so.
    package var presentWishes: TaskWishes { wishes.withLock { $0 } }

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
