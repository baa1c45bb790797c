// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A task that downloads a file with any number of requests, but reports only one response.
final class SavingTask: NetworkTask, AbandonableTask {
    private let run: DownloadRun
    private let notification: SavingNotification

    init(
        _ request: NetworkRequest, _ session: any NetworkSession, _ download: Download,
        _ receiver: any NetworkReceiver, _ didStart: @escaping @Sendable (DownloadStart) -> Void,
        _ didSave: @escaping @Sendable (DownloadedFile, FileStatus?) -> Void
    ) {
        let notification = SavingNotification(receiver, didSave)
        self.notification = notification
        var callbacks = DownloadCallbacks(whenDone: { notification.end($0) })
        if HopObserverReceiver.watcher(behind: receiver) != nil { callbacks.watcher = { notification.record($0) } }
        // The attempt policies see the headers of each response as soon as they arrive.
        callbacks.refuses = { notification.refuses($0) }
        callbacks.maySend = { notification.maySend($0) }
        callbacks.reportHead = { head, start in
            didStart(start)
            notification.host?.willReceive(head)
        }
        callbacks.reportSent = { notification.host?.sent($0, of: $1) }
        callbacks.reportProgress = { notification.host?.saved($0) }
        callbacks.reportMetrics = { notification.keep($0) }
        callbacks.mayPublish = { notification.host?.mayPublish() ?? true }
        run = DownloadRun(request, over: session, with: download, callbacks)
    }

    func resume() {
        notification.begin(self)
        run.resume()
    }

    func suspend() { run.suspend() }

    func cancel() {
        notification.begin(self)
        run.cancel()
    }

    func giveUp() {
        notification.begin(self)
        run.giveUp()
    }

    // The transfer is held when the disk is slower, and the receiver gets none of the bytes.
    func hold() {}
    func proceed() {}
}

/// The receiver of a download that belongs to an operation.
protocol DownloadHost: NetworkReceiver {
    /// Announces the headers that the download will deliver, unless it fails.
    func willReceive(_ head: ResponseHead)
    /// Returns whether the file of a response must not be moved to its destination.
    func refuses(_ head: ResponseHead) -> Bool
    /// Reports that bytes of the request body were sent.
    func sent(_ count: Int64, of total: Int64?)
    /// Reports that bytes of the file were written to disk.
    func saved(_ progress: DownloadProgress)
    /// Returns whether the complete file may be moved to its destination.
    func mayPublish() -> Bool
}

/// An object that reports the outcome of a ``SavingTask`` to its receiver once, and then releases the receiver.
private final class SavingNotification: Sendable {
    private struct State {
        var receiver: (any NetworkReceiver)?
        /// The receiver if it belongs to an operation.
        var host: (any DownloadHost)?
        /// The task, which keeps itself alive from its start to its end.
        var task: SavingTask?
        var metrics: TransferMetrics?
    }

    private let didSave: @Sendable (DownloadedFile, FileStatus?) -> Void
    private let state: Locked<State>

    init(_ receiver: any NetworkReceiver, _ didSave: @escaping @Sendable (DownloadedFile, FileStatus?) -> Void) {
        state = Locked(State(receiver: receiver, host: receiver as? any DownloadHost))
        self.didSave = didSave
    }

    /// The receiver if it belongs to an operation, or `nil` after the end.
    var host: (any DownloadHost)? { state.withLock { $0.host } }

    func refuses(_ head: ResponseHead) -> Bool {
        let (isOver, host) = state.withLock { ($0.receiver == nil, $0.host) }
        return isOver || host?.refuses(head) ?? false
    }

    func maySend(_ task: any NetworkTask) -> Bool {
        let (isOver, host) = state.withLock { ($0.receiver == nil, $0.host) }
        return !isOver && host?.taskMaySend(task) ?? true
    }

    func begin(_ task: SavingTask) {
        state.withLock { state in
            if state.receiver != nil { state.task = task }
        }
    }

    /// Stores the metrics of a request, because only those of the last request are reported, before the end.
    func keep(_ metrics: TransferMetrics) {
        state.withLock { $0.metrics = metrics }
    }

    func end(_ conclusion: DownloadConclusion) {
        let left = state.withLock { exchange(&$0, with: State()) }
        guard let task = left.task, let receiver = left.receiver else { return }
        notify(conclusion, task, receiver, left.host)
        if let metrics = left.metrics { receiver.task(task, didCollect: metrics) }
        if case .failed(let error) = conclusion {
            receiver.task(task, didEndWith: error)
        } else {
            receiver.task(task, didEndWith: nil)
        }
    }

    private func notify(
        _ conclusion: DownloadConclusion, _ task: SavingTask, _ receiver: any NetworkReceiver,
        _ host: (any DownloadHost)?
    ) {
        switch conclusion {
        case .saved(let file, let head, let published):
            didSave(file, published)
            // The file may have been complete before, so that no bytes were received.
            host?.saved(DownloadProgress(received: file.length, total: file.length))
            receiver.task(task, didReceive: head.asWhole(length: file.length))
        case .answered(let head, let body):
            receiver.task(task, didReceive: head)
            if !body.isEmpty { body.withUnsafeBytes { receiver.task(task, didReceive: $0) } }
        case .failed, .again: break
        }
    }

    /// Passes a step of a request to the observer of the receiver.
    func record(_ step: HopStep) {
        let receiver = state.withLock { $0.receiver }
        receiver.flatMap { HopObserverReceiver.watcher(behind: $0) }?(step)
    }
}

/// A session that writes each response to its destination on disk before it reports the end of the task.
///
/// The receiver of a task gets the headers and the end. The receiver gets the bytes only of a response that is not the
/// file. The session may send several requests for one task.
final class SavingSession: NetworkSession {
    private let session: any NetworkSession
    private let makeDownload: @Sendable (NetworkRequest) -> Download
    private let didStart: @Sendable (DownloadStart) -> Void
    private let didSave: @Sendable (DownloadedFile, FileStatus?) -> Void

    init(
        over session: any NetworkSession, _ makeDownload: @escaping @Sendable (NetworkRequest) -> Download,
        didStart: @escaping @Sendable (DownloadStart) -> Void,
        didSave: @escaping @Sendable (DownloadedFile, FileStatus?) -> Void
    ) {
        self.session = session
        self.makeDownload = makeDownload
        self.didStart = didStart
        self.didSave = didSave
    }

    func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        // A response without a body is not a file.
        if request.method == "HEAD" { return session.makeTask(with: request, receiver: receiver) }
        return SavingTask(request, session, makeDownload(request), receiver, didStart, didSave)
    }
}

/// The receiver of the response to one request of a download.
package final class DownloadReceiver: NetworkReceiver {
    private let download: Download
    private let callbacks: DownloadCallbacks
    private let inbox = Locked(DownloadInbox())

    package init(_ download: Download, _ callbacks: DownloadCallbacks) {
        self.download = download
        self.callbacks = callbacks
    }

    package func task(_ task: any NetworkTask, didReceive head: ResponseHead) {
        start(inbox.withLock { $0.put(head) }, for: task)
    }

    package func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {
        // Only this thread adds bytes, so the inbox will be full after they are added. Hold the transfer first, because
        // the queue might otherwise let it proceed before it is held.
        let holds = inbox.withLock { $0.isFilled(by: bytes.count) }
        if holds { task.hold() }
        start(inbox.withLock { $0.put(bytes, isHeld: holds) }, for: task)
    }

    private func start(_ need: DownloadInbox.Need, for task: any NetworkTask) {
        switch need {
        case .none: break
        case .now: work(for: task)
        case .soon:
            guard let deferredWork = SessionDeferredWork.current else { return settle(for: task) }
            deferredWork.deferWork(for: self) { self.settle(for: task) }
        }
    }

    package func taskMaySend(_ task: any NetworkTask) -> Bool { callbacks.maySend(task) }

    package var nextReceiver: (any NetworkReceiver)? { callbacks.watcher.map { HopObserverReceiver($0) } }

    package func task(_ task: any NetworkTask, didSend count: Int64, of total: Int64?) {
        callbacks.reportSent(count, total)
    }

    private func settle(for task: any NetworkTask) {
        if inbox.withLock({ $0.settle() }) { work(for: task) }
    }

    package func task(_ task: any NetworkTask, didCollect metrics: TransferMetrics) {
        inbox.withLock { $0.put(metrics) }
    }

    package func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
        if inbox.withLock({ $0.put(end: error) }) { work(for: task) }
    }

    private func work(for task: any NetworkTask) {
        let isBrief = download.endsBriefly && inbox.withLock { $0.isBrief }
        download.perform(isBrief: isBrief) { [self] work, _ in
            var memory: [UInt8] = []
            while let batch = inbox.withLock({ $0.take(exchange(&memory, with: [])) }) {
                if batch.proceeds { task.proceed() }
                if !take(batch, work) {
                    inbox.withLock { $0.dropBytes() }
                    task.cancel()
                }
                if let metrics = batch.metrics {
                    callbacks.watcher?(.measured(metrics))
                    callbacks.reportMetrics(metrics)
                }
                if let end = batch.end {
                    var error: NetworkError?
                    if case .failure(let failure) = end { error = failure }
                    return callbacks.whenDone(work.end(error, mayPublish: callbacks.mayPublish))
                }
                memory = batch.bytes
            }
        }
    }

    private func take(_ batch: DownloadInbox.Batch, _ work: DownloadWork) -> Bool {
        if let head = batch.head {
            let continues = work.receive(head, refuses: callbacks.refuses)
            callbacks.watcher?(work.asksFromStart ? .left(head) : .received(head))
            if let head = work.presentHead { callbacks.reportHead(head, work.start) }
            guard continues else { return false }
        }
        guard !batch.bytes.isEmpty else { return true }
        let continues = batch.bytes.withUnsafeBytes { work.receive($0) }
        if continues { callbacks.reportProgress(work.progress) }
        return continues
    }
}

/// A collector whose result is the URL of the file that was saved during the transfer.
final class SavedFileCollector: ResponseCollector<URL>, @unchecked Sendable {
    // Sendable: as its superclass.

    private let file: TemporaryFile?
    private let url: URL?
    /// The first bytes of a response that is not the file.
    private var answer = Data()

    /// Creates a collector for a file that remains.
    init(_ url: URL?) {
        self.url = url
        file = nil
        super.init()
    }

    /// Creates a collector for a file that is removed with this object, unless it is handed over.
    init(_ file: TemporaryFile) {
        url = file.url
        self.file = file
        super.init()
    }

    /// The value is `false` because the file may have been complete before the transfer.
    override var mayBeEmpty: Bool { false }

    override var temporaryFile: TemporaryFile? { file }

    override func receive(_ bytes: UnsafeRawBufferPointer, flow: any NetworkTask) {
        answer.append(contentsOf: bytes.prefix(max(ErrorBodyCollector.readLimit - answer.count, 0)))
    }

    override func prefix(_ count: Int) -> Data? { answer.isEmpty ? nil : Data(answer.prefix(max(count, 0))) }

    override func finish() throws -> URL {
        guard let url else {
            throw NetworkError(
                code: .invalidResponse, phase: .saving, message: "The response ended without a file.")
        }
        return url
    }
}
