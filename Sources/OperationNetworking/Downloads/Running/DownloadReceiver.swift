// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Takes in the response of one request of a download.
final class DownloadReceiver: NetworkReceiver {
    private let download: Download
    /// That of the attempt that downloads, if it wants to know of each request.
    private let hopWatcher: (any HopWatcher)?
    private let refuses: @Sendable (ResponseHead) -> Bool
    private let mayLeave: @Sendable (any NetworkTask) -> Bool
    private let tellHead: @Sendable (ResponseHead, DownloadStart) -> Void
    private let tellSent: @Sendable (Int64, Int64?) -> Void
    private let tellProgress: @Sendable (DownloadProgress) -> Void
    private let tellMetrics: @Sendable (TransferMetrics) -> Void
    private let whenDone: @Sendable (DownloadConclusion) -> Void
    private let inbox = Locked(DownloadInbox())

    init(
        _ download: Download, watcher: (any HopWatcher)?, refuses: @escaping @Sendable (ResponseHead) -> Bool,
        mayLeave: @escaping @Sendable (any NetworkTask) -> Bool,
        tellHead: @escaping @Sendable (ResponseHead, DownloadStart) -> Void,
        tellSent: @escaping @Sendable (Int64, Int64?) -> Void,
        tellProgress: @escaping @Sendable (DownloadProgress) -> Void,
        tellMetrics: @escaping @Sendable (TransferMetrics) -> Void,
        whenDone: @escaping @Sendable (DownloadConclusion) -> Void
    ) {
        self.download = download
        self.hopWatcher = watcher
        self.refuses = refuses
        self.mayLeave = mayLeave
        self.tellHead = tellHead
        self.tellSent = tellSent
        self.tellProgress = tellProgress
        self.tellMetrics = tellMetrics
        self.whenDone = whenDone
    }

    func task(_ task: any NetworkTask, didReceive head: ResponseHead) {
        if inbox.withLock({ $0.put(head) }) { work(for: task) }
    }

    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {
        // Only this thread adds bytes: what is full now will be when they are there. The brake comes first, or the queue
        // might loose it before it was set.
        let holds = inbox.withLock { $0.isFilled(by: bytes.count) }
        if holds { task.hold() }
        switch inbox.withLock({ $0.put(bytes, isHeld: holds) }) {
        case .none: break
        case .now: work(for: task)
        case .soon:
            guard let turn = SessionTurn.current else { return settle(for: task) }
            turn.putOff(for: self) { self.settle(for: task) }
        }
    }

    func taskMayLeave(_ task: any NetworkTask) -> Bool { mayLeave(task) }

    var nextReceiver: (any NetworkReceiver)? { hopWatcher.map { HopPost($0) } }

    func task(_ task: any NetworkTask, didSend count: Int64, of total: Int64?) { tellSent(count, total) }

    private func settle(for task: any NetworkTask) {
        if inbox.withLock({ $0.settle() }) { work(for: task) }
    }

    func task(_ task: any NetworkTask, didCollect metrics: TransferMetrics) {
        if inbox.withLock({ $0.put(metrics) }) { work(for: task) }
    }

    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
        if inbox.withLock({ $0.put(end: error) }) { work(for: task) }
    }

    private func work(for task: any NetworkTask) {
        download.perform { [self] work in
            var memory: [UInt8] = []
            while let batch = inbox.withLock({ $0.take(exchange(&memory, with: [])) }) {
                if batch.proceeds { task.proceed() }
                if !take(batch, work) {
                    inbox.withLock { $0.dropBytes() }
                    task.cancel()
                }
                if let metrics = batch.metrics {
                    hopWatcher?.measured(metrics)
                    tellMetrics(metrics)
                }
                if let end = batch.end { return conclude(end, work) }
                memory = batch.bytes
            }
        }
    }

    private func take(_ batch: DownloadInbox.Batch, _ work: DownloadWork) -> Bool {
        if let head = batch.head {
            let goesOn = work.receive(head, refuses: refuses)
            if work.asksAnew { hopWatcher?.left(head) } else { hopWatcher?.answered(head) }
            guard goesOn else { return false }
            if let head = work.presentHead { tellHead(head, work.start) }
        }
        guard !batch.bytes.isEmpty else { return true }
        let goesOn = batch.bytes.withUnsafeBytes { work.receive($0) }
        if goesOn { tellProgress(work.progress) }
        return goesOn
    }

    private func conclude(_ end: Result<Void, NetworkError>, _ work: DownloadWork) {
        switch end {
        case .success: whenDone(work.end(nil))
        case .failure(let error): whenDone(work.end(error))
        }
    }
}
