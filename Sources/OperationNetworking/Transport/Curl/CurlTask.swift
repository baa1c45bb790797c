// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if os(Linux)
    /// A task of a ``CurlSession``.
    final class CurlTask: NetworkTask {
        /// What is told later, because the receiver or the user has set a brake.
        enum Pending {
            case informational(ResponseHead)
            case head(ResponseHead)
            case trailers(HeaderFields)
            case metrics(TransferMetrics)
        }

        /// What only the thread of the session touches; after its end, only who ends the task in its place.
        struct Confined {
            var receiver: (any NetworkReceiver)?
            var machine = TaskMachine()
            var transfer: CurlTransfer?
            var place: SlotTable<CurlTask>.Place?
            var pending = Fifo<Pending>()
            /// Where it stands in the list of tasks that the loop knows; -1 if it does not.
            var index = -1
            var resumedAt: Int64 = 0
            /// How many bytes of the request's body the receiver was told of.
            var toldSent: Int64 = 0
            /// How often it was sent anew because an old connection broke.
            var repetitions = 0
        }

        enum Permission {
            case go
            case keep
            case drop
        }

        let request: NetworkRequest
        private let engine: CurlEngine
        private let wishes = Locked(TaskWishes())
        // Sendable: see `Confined`; the mailbox passes the task from thread to thread.
        nonisolated(unsafe) var confined: Confined

        init(_ request: NetworkRequest, _ receiver: any NetworkReceiver, _ engine: CurlEngine) {
            self.request = request
            self.engine = engine
            confined = Confined(receiver: receiver)
        }

        func resume() { post(wishes.withLock { $0.resume() }) }
        func suspend() { post(wishes.withLock { $0.suspend() }) }
        func cancel() { post(wishes.withLock { $0.cancel() }) }
        func hold() { post(wishes.withLock { $0.hold() }) }
        func proceed() { post(wishes.withLock { $0.proceed() }) }
        func bodyIsReady() { post(wishes.withLock { $0.bodyIsReady() }) }

        private func post(_ isNews: Bool) {
            if isNews { engine.post(self) }
        }

        /// What is wanted now; from now on, news are posted again.
        func takeWishes() -> TaskWishes { wishes.withLock { $0.take() } }

        /// What is wanted now; news that were posted stay so.
        var presentWishes: TaskWishes { wishes.withLock { $0 } }

        /// How far it has come.
        var phase: NetworkError.Phase { confined.transfer?.phase ?? confined.machine.restingPhase }

        var isSuspended: Bool { wishes.withLock { $0.isSuspended } }
        var isBraked: Bool { wishes.withLock { $0.isBraked } }
        var isCancelled: Bool { wishes.withLock { $0.isCancelled } }
    }

    // What the receiver is told. On the thread of the session.
    extension CurlTask {
        /// Whether the receiver may be told something that came in.
        var permission: Permission {
            let (isCancelled, isBraked) = wishes.withLock { ($0.isCancelled, $0.isBraked) }
            return isCancelled ? .drop : isBraked || !confined.pending.isEmpty ? .keep : .go
        }

        /// Whether something waits to be told before the end may be.
        var isHeldBack: Bool { isBraked || !confined.pending.isEmpty }

        /// Tells it now, or later if there is a brake.
        func tell(_ event: Pending) {
            switch permission {
            case .go: deliver(event)
            case .keep: confined.pending.append(event)
            case .drop: break
            }
        }

        private func deliver(_ event: Pending) {
            guard let receiver = confined.receiver else { return }
            switch event {
            case .informational(let head): receiver.task(self, didReceiveInformational: head)
            case .head(let head): receiver.task(self, didReceive: head)
            case .trailers(let fields): receiver.task(self, didReceiveTrailers: fields)
            case .metrics(let metrics): receiver.task(self, didCollect: metrics)
            }
        }

        /// Tells what was kept, until the next brake.
        func deliverPending() {
            while !isCancelled, !isBraked, let event = confined.pending.popFirst() { deliver(event) }
        }

        /// Tells of the bytes that were sent, if they are more than was told before.
        func tellSent(_ count: Int64) {
            guard count > confined.toldSent, !isCancelled else { return }
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
            confined.pending = Fifo()
            let receiver = confined.receiver
            confined.receiver = nil
            receiver?.task(self, didEndWith: error)
        }
    }
#endif
