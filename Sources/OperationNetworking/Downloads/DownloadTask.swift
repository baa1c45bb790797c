// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A task that downloads a file with as many requests as the server makes necessary, but reports only one response.
///
/// The task does not send a request again after a failure. Repeating a request is the task of the retry.
package final class DownloadTask: OrderedTask {
    /// The receiver of the task, which is released at the end.
    private struct Client {
        let receiver: any NetworkReceiver
        /// The receiver if it belongs to an operation.
        let host: (any DownloadHost)?
        /// The observer of each request, if there is one.
        let watcher: HopWatcher?
        /// The metrics of the last request, which are reported before the end.
        var metrics: TransferMetrics?
    }

    fileprivate let download: Download
    private let request: NetworkRequest
    private let session: any NetworkSession
    private let didStart: @Sendable (DownloadStart) -> Void
    private let didSave: @Sendable (DownloadedFile, FileStatus?) -> Void
    private let steering = Locked(DownloadSteering())
    private let client: Locked<Client?>

    /// Creates a task.
    ///
    /// - Parameters:
    ///   - didStart: A closure that is called on the download's queue when a response contains the file or the rest of
    ///     it.
    ///   - didSave: A closure that is called on the download's queue when the file is at its destination, where it has
    ///     this status, which is `nil` for a temporary file. The end of the task follows.
    package init(
        _ request: NetworkRequest, over session: any NetworkSession, with download: Download,
        _ receiver: any NetworkReceiver, didStart: @escaping @Sendable (DownloadStart) -> Void = { _ in },
        didSave: @escaping @Sendable (DownloadedFile, FileStatus?) -> Void
    ) {
        self.request = request
        self.session = session
        self.download = download
        self.didStart = didStart
        self.didSave = didSave
        client = Locked(
            Client(
                receiver: receiver, host: receiver as? any DownloadHost,
                watcher: HopObserverReceiver.watcher(behind: receiver)))
    }

    /// Starts the task, or resumes it after it was suspended.
    package func resume() { start(if: steering.withLock { $0.resume() }) }

    /// Suspends the transfer.
    package func suspend() {
        steering.withLock { $0.suspend() }
        passPauseOrder()
    }

    package func follow(_ order: PauseOrder) { start(if: steering.withLock { $0.follow(order) }) }

    private func start(if begins: Bool) {
        if begins { download.takeTurn { [self] in ask(isFirst: true) } } else { passPauseOrder() }
    }

    /// Cancels the task.
    ///
    /// After this method returns, the file is not moved to its destination, unless the move has already begun.
    package func cancel() {
        download.cancel()
        stop()
    }

    /// Cancels the task, so that another task can continue with the bytes that it received.
    fileprivate func giveUp() {
        // The next download finds a partial file on disk without this object.
        if !download.isTemporary { download.cancel() }
        stop()
    }

    // The transfer is held when the disk is slower, and the receiver gets none of the bytes.
    package func hold() {}
    package func proceed() {}

    private func stop() {
        switch steering.withLock({ $0.cancel() }) {
        case .ended: report(.failed(.cancelledDownload))
        case .task(let task): task.cancel()
        case .noTask: break
        }
    }

    /// - Parameter isFirst: Whether the task has not sent a request yet.
    private func ask(isFirst: Bool) {
        download.prepare(request) { [self] result in
            switch result {
            case .success(let request): send(request)
            case .failure(var error):
                error.isUnsent = isFirst
                end(.failed(error))
            }
        }
    }

    private func send(_ request: NetworkRequest) {
        let task = session.makeTask(with: request, receiver: DownloadReceiver(self))
        let target = PauseOrderTarget(task)
        if steering.withLock({ $0.take(target) }) { passPauseOrder() } else { task.cancel() }
    }

    /// Passes the wanted order to the task of the current request, which ignores the order if it has a newer one.
    private func passPauseOrder() {
        guard let (target, order) = steering.withLock({ $0.wanted }) else { return }
        target.pass(order)
    }
}

// Events of the present request. Except for `taskMaySend`, they come on the download's queue.
extension DownloadTask {
    /// The receiver if it belongs to an operation, or `nil` after the end.
    fileprivate var host: (any DownloadHost)? { client.withLock { $0?.host } }

    /// Whether an observer is notified of each request.
    fileprivate var isObserved: Bool { client.withLock { $0?.watcher != nil } }

    /// Passes a step of a request to the observer, if there is one.
    fileprivate func record(_ step: HopStep) { client.withLock { $0?.watcher }?(step) }

    /// Returns whether the request may still be sent, on the session's thread when the request gets a slot.
    fileprivate func maySend(_ task: any NetworkTask) -> Bool {
        guard let client = client.withLock({ $0 }) else { return false }
        return client.host?.taskMaySend(task) ?? true
    }

    /// Returns whether a response must not be written to the file.
    ///
    /// The attempt policies see the headers of each response as soon as they arrive.
    fileprivate func refuses(_ head: ResponseHead) -> Bool {
        guard let client = client.withLock({ $0 }) else { return true }
        return client.host?.refuses(head) ?? false
    }

    /// Announces the headers of a response that contains the file or the rest of it.
    fileprivate func willReceive(_ head: ResponseHead, _ start: DownloadStart) {
        didStart(start)
        host?.willReceive(head)
    }

    fileprivate func keep(_ metrics: TransferMetrics) {
        client.withLock { client -> Void in client?.metrics = metrics }
    }

    fileprivate func mayPublish() -> Bool { host?.mayPublish() ?? true }

    fileprivate func requestEnded(_ conclusion: DownloadConclusion) {
        guard case .again = conclusion else { return end(conclusion) }
        let (isWanted, last) = steering.withLock { $0.askAgain() }
        extendLifetime(last)
        if isWanted { ask(isFirst: false) } else { end(conclusion) }
    }

    private func end(_ conclusion: DownloadConclusion) {
        let (isCancelled, last) = steering.withLock { $0.end() }
        extendLifetime(last)
        download.close { [self] in
            defer { download.passTurn() }
            switch conclusion {
            // The file is at its destination, even if the task was canceled in the meantime.
            case .saved: report(conclusion)
            case .failed(let error) where error.code == .cancelled: report(conclusion)
            case .answered, .failed, .again: report(isCancelled ? .failed(.cancelledDownload) : conclusion)
            }
        }
    }

    /// Reports the end to the receiver once, and then releases the receiver.
    private func report(_ conclusion: DownloadConclusion) {
        guard let client = client.withLock({ exchange(&$0, with: nil) }) else { return }
        // If no session received a request, for example because the destination exists, its token is not used. After
        // that, only an exchange knows whether the token was used.
        if !steering.withLock({ $0.hasPassedRequest }) { request.ratePass?.takeToken()?.giveBack() }
        var failure: NetworkError?
        switch conclusion {
        case .saved(let file, let head, let published):
            didSave(file, published)
            // The file may have been complete before, so that no bytes were received.
            client.host?.saved(DownloadProgress(received: file.length, total: file.length))
            client.receiver.task(self, didReceive: head.asWhole(length: file.length))
        case .answered(let head, let body):
            client.receiver.task(self, didReceive: head)
            if !body.isEmpty { body.withUnsafeBytes { client.receiver.task(self, didReceive: $0) } }
        case .failed(let error): failure = error
        case .again: break
        }
        if let metrics = client.metrics { client.receiver.task(self, didCollect: metrics) }
        client.receiver.task(self, didEndWith: failure)
    }
}

extension NetworkTask {
    /// Ends the task of an attempt that another attempt may follow.
    func endForAttempt() {
        if let download = self as? DownloadTask { download.giveUp() } else { cancel() }
    }
}

/// The receiver of a download that belongs to an operation.
package protocol DownloadHost: NetworkReceiver {
    /// Announces the headers that the download will deliver, unless it fails.
    func willReceive(_ head: ResponseHead)
    /// Returns whether the file of a response must not be moved to its destination.
    func refuses(_ head: ResponseHead) -> Bool
    /// Reports that bytes of the request body were sent.
    func sent(_ count: Int64, of total: Int64?)
    /// Reports that bytes of the file were written to disk.
    func saved(_ progress: DownloadProgress)
    /// Returns whether the complete file may be moved to its destination.
    ///
    /// The download calls this method on its own queue, immediately before the move.
    func mayPublish() -> Bool
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
        return DownloadTask(
            request, over: session, with: makeDownload(request), receiver, didStart: didStart, didSave: didSave)
    }
}

/// The receiver of the response to one request of a download.
private final class DownloadReceiver: NetworkReceiver {
    private let owner: DownloadTask
    private let inbox = Locked(DownloadInbox())

    init(_ owner: DownloadTask) {
        self.owner = owner
    }

    func task(_ task: any NetworkTask, didReceive head: ResponseHead) {
        start(inbox.withLock { $0.put(head) }, for: task)
    }

    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {
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

    func taskMaySend(_ task: any NetworkTask) -> Bool { owner.maySend(task) }

    var nextReceiver: (any NetworkReceiver)? {
        owner.isObserved ? HopObserverReceiver { [owner] in owner.record($0) } : nil
    }

    func task(_ task: any NetworkTask, didSend count: Int64, of total: Int64?) {
        owner.host?.sent(count, of: total)
    }

    private func settle(for task: any NetworkTask) {
        if inbox.withLock({ $0.settle() }) { work(for: task) }
    }

    func task(_ task: any NetworkTask, didCollect metrics: TransferMetrics) {
        inbox.withLock { $0.put(metrics) }
    }

    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
        if inbox.withLock({ $0.put(end: error) }) { work(for: task) }
    }

    private func work(for task: any NetworkTask) {
        let isBrief = owner.download.endsBriefly && inbox.withLock { $0.isBrief }
        owner.download.perform(isBrief: isBrief) { [self] work, _ in
            var memory: [UInt8] = []
            while let batch = inbox.withLock({ $0.take(exchange(&memory, with: [])) }) {
                if batch.proceeds { task.proceed() }
                if !take(batch, work) {
                    inbox.withLock { $0.dropBytes() }
                    task.cancel()
                }
                if let metrics = batch.metrics {
                    owner.record(.measured(metrics))
                    owner.keep(metrics)
                }
                if let end = batch.end {
                    var error: NetworkError?
                    if case .failure(let failure) = end { error = failure }
                    return owner.requestEnded(work.end(error, mayPublish: owner.mayPublish))
                }
                memory = batch.bytes
            }
        }
    }

    private func take(_ batch: DownloadInbox.Batch, _ work: DownloadWork) -> Bool {
        if let head = batch.head {
            let continues = work.receive(head, refuses: owner.refuses)
            owner.record(work.asksFromStart ? .left(head) : .received(head))
            if let head = work.presentHead { owner.willReceive(head, work.start) }
            guard continues else { return false }
        }
        guard !batch.bytes.isEmpty else { return true }
        let continues = batch.bytes.withUnsafeBytes { work.receive($0) }
        if continues { owner.host?.saved(work.progress) }
        return continues
    }
}

/// A collector whose result is the URL of the file that was saved during the transfer.
final class SavedFileCollector: ResponseCollector<URL>, @unchecked Sendable {
    // Sendable: as its superclass.

    private let file: SpooledFile?
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
    init(_ file: SpooledFile) {
        url = file.url
        self.file = file
        super.init()
    }

    /// The value is `false` because the file may have been complete before the transfer.
    override var mayBeEmpty: Bool { false }

    override var temporaryFile: SpooledFile? { file }

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
