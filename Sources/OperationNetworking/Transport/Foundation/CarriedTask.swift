// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A task of a `URLSession` as a ``NetworkSession``.
final class CarriedTask: NetworkTask {
    /// What is told to the receiver, perhaps later.
    enum Event {
        case informational(ResponseHead)
        case head(ResponseHead)
        case bytes(Data)
        case metrics(TransferMetrics)
    }

    /// What only the queue of the carrier touches.
    struct Confined {
        var receiver: (any NetworkReceiver)?
        var machine = TaskMachine()
        var transfer: CarriedTransfer?
        var place: SlotTable<CarriedTask>.Place?
        var pending = Fifo<Event>()
        var pendingBytes = 0
        var resumedAt: Int64 = 0
        /// How many bytes of the request's body the receiver was told of.
        var toldSent: Int64 = 0
        /// The session is kept for its tasks.
        var owner: URLSession?
    }

    private enum Permission {
        case go
        case keep
        case drop
    }

    /// How many bytes may come in although a brake is set, before the transfer is given up.
    static let maximumPendingBytes = 64 << 20

    let request: NetworkRequest
    private let carrier: URLSessionCarrier
    private let wishes = Locked(TaskWishes())
    // Sendable: see `Confined`.
    nonisolated(unsafe) var confined: Confined

    init(
        _ request: NetworkRequest, _ receiver: any NetworkReceiver, owner: URLSession, _ carrier: URLSessionCarrier
    ) {
        self.request = request
        self.carrier = carrier
        confined = Confined(receiver: receiver, owner: owner)
    }

    func resume() { post(wishes.withLock { $0.resume() }) }
    func suspend() { post(wishes.withLock { $0.suspend() }) }
    func cancel() { post(wishes.withLock { $0.cancel() }) }
    func hold() { post(wishes.withLock { $0.hold() }) }
    func proceed() { post(wishes.withLock { $0.proceed() }) }

    private func post(_ isNews: Bool) {
        if isNews { carrier.post(self) }
    }
}

// What the receiver is told. On the queue of the carrier.
extension CarriedTask {
    /// What is wanted now; from now on, news are posted again.
    func takeWishes() -> TaskWishes { wishes.withLock { $0.take() } }

    var isBraked: Bool { wishes.withLock { $0.isBraked } }

    /// Whether something waits to be told before the end may be.
    var isHeldBack: Bool { isBraked || !confined.pending.isEmpty }

    private var permission: Permission {
        let (isCancelled, isBraked) = wishes.withLock { ($0.isCancelled, $0.isBraked) }
        return isCancelled ? .drop : isBraked || !confined.pending.isEmpty ? .keep : .go
    }

    /// Tells it now, or later if there is a brake.
    func tell(_ event: Event) {
        switch permission {
        case .go: deliver(event)
        case .keep:
            if case .bytes(let data) = event { confined.pendingBytes += data.count }
            confined.pending.append(event)
        case .drop: break
        }
    }

    private func deliver(_ event: Event) {
        guard let receiver = confined.receiver else { return }
        switch event {
        case .informational(let head): receiver.task(self, didReceiveInformational: head)
        case .head(let head): receiver.task(self, didReceive: head)
        case .bytes(let data): data.withUnsafeBytes { receiver.task(self, didReceive: $0) }
        case .metrics(let metrics): receiver.task(self, didCollect: metrics)
        }
    }

    /// Tells what was kept, until the next brake.
    func deliverPending() {
        while wishes.withLock({ !$0.isCancelled && !$0.isBraked }), let event = confined.pending.popFirst() {
            if case .bytes(let data) = event { confined.pendingBytes -= data.count }
            deliver(event)
        }
    }

    func dropPending() {
        confined.pending = Fifo()
        confined.pendingBytes = 0
    }

    /// Tells of the bytes that were sent, if they are more than was told before.
    func tellSent(_ count: Int64) {
        let count = min(count, request.body.length ?? .max)
        guard count > confined.toldSent, permission != .drop else { return }
        confined.toldSent = count
        confined.receiver?.task(self, didSend: count, of: request.body.length)
    }

    /// Tells the end, or the cancel that came before it, and lets go of the receiver.
    func tellEnd(_ error: NetworkError?) {
        var error = error
        if !wishes.withLock({ $0.end(asCancelled: false) }) {
            guard wishes.withLock({ $0.end(asCancelled: true) }) else { return }
            error = NetworkError(
                code: .cancelled, phase: error?.phase ?? .receiving, message: "The request was cancelled.")
        }
        error?.request = request.summary
        dropPending()
        let receiver = confined.receiver
        confined.receiver = nil
        confined.owner = nil
        receiver?.task(self, didEndWith: error)
    }
}
