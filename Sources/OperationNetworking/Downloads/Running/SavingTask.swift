// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// A download as a task: one head, one end, and whatever requests it takes beneath.
final class SavingTask: NetworkTask, GivingUp {
    private let run: DownloadRun
    private let telling: SavingTell

    init(
        _ request: NetworkRequest, _ session: any NetworkSession, _ download: Download,
        _ receiver: any NetworkReceiver, _ didStart: @escaping @Sendable (DownloadStart) -> Void,
        _ didSave: @escaping @Sendable (DownloadedFile, FileStatus?) -> Void
    ) {
        let telling = SavingTell(receiver, didSave)
        self.telling = telling
        run = DownloadRun(
            request, over: session, with: download,
            watcher: HopPost.watcher(behind: receiver) == nil ? nil : telling,
            // Those who have a say learn of each head, as soon as it is there.
            refuses: { telling.refuses($0) },
            mayLeave: { telling.mayLeave($0) },
            tellHead: { head, start in
                didStart(start)
                telling.attempt?.foresee(head)
            },
            tellSent: { telling.attempt?.sent($0, of: $1) },
            tellProgress: { telling.attempt?.saved($0) },
            tellMetrics: { telling.keep($0) },
            whenDone: { telling.end($0) })
    }

    func resume() {
        telling.begin(self)
        run.resume()
    }

    func suspend() { run.suspend() }

    func cancel() {
        telling.begin(self)
        run.cancel()
    }

    func giveUp() {
        telling.begin(self)
        run.giveUp()
    }

    // What comes in is held where the disk is slower, and the receiver gets none of it.
    func hold() {}
    func proceed() {}
}

/// Tells the receiver of a ``SavingTask`` what came of it, once; whoever keeps the task keeps no receiver after that.
private final class SavingTell: Sendable {
    private struct State {
        var receiver: (any NetworkReceiver)?
        /// The task, from its beginning to its end: it keeps itself alive.
        var task: SavingTask?
        var metrics: TransferMetrics?
    }

    private let didSave: @Sendable (DownloadedFile, FileStatus?) -> Void
    private let state: Locked<State>

    init(_ receiver: any NetworkReceiver, _ didSave: @escaping @Sendable (DownloadedFile, FileStatus?) -> Void) {
        state = Locked(State(receiver: receiver))
        self.didSave = didSave
    }

    /// Nil after the end.
    private var receiver: (any NetworkReceiver)? { state.withLock { $0.receiver } }

    /// The receiver, if it is that of an operation.
    var attempt: AttemptReceiver? { receiver as? AttemptReceiver }

    func refuses(_ head: ResponseHead) -> Bool {
        guard let receiver else { return true }
        return (receiver as? AttemptReceiver)?.refuses(head) ?? false
    }

    func mayLeave(_ task: any NetworkTask) -> Bool {
        guard let receiver else { return false }
        return (receiver as? AttemptReceiver)?.taskMayLeave(task) ?? true
    }

    func begin(_ task: SavingTask) {
        state.withLock { state in
            if state.receiver != nil { state.task = task }
        }
    }

    /// Those of the last request are told, before the end.
    func keep(_ metrics: TransferMetrics) {
        state.withLock { $0.metrics = metrics }
    }

    func end(_ conclusion: DownloadConclusion) {
        let left = state.withLock { exchange(&$0, with: State()) }
        guard let task = left.task, let receiver = left.receiver else { return }
        tell(conclusion, task, receiver)
        if let metrics = left.metrics { receiver.task(task, didCollect: metrics) }
        if case .failed(let error) = conclusion {
            receiver.task(task, didEndWith: error)
        } else {
            receiver.task(task, didEndWith: nil)
        }
    }

    private func tell(_ conclusion: DownloadConclusion, _ task: SavingTask, _ receiver: any NetworkReceiver) {
        switch conclusion {
        case .saved(let file, let head, let published):
            didSave(file, published)
            // It may have been there before, and nothing have come.
            (receiver as? AttemptReceiver)?.saved(DownloadProgress(received: file.length, total: file.length))
            receiver.task(task, didReceive: head.asWhole(length: file.length))
        case .answered(let head, let body):
            receiver.task(task, didReceive: head)
            if !body.isEmpty { body.withUnsafeBytes { receiver.task(task, didReceive: $0) } }
        case .failed, .again: break
        }
    }
}

extension SavingTell: HopWatcher {
    private var watcher: (any HopWatcher)? { receiver.flatMap { HopPost.watcher(behind: $0) } }

    func hopBegins(_ request: NetworkRequest) { watcher?.hopBegins(request) }
    func sentBody() { watcher?.sentBody() }
    func left(_ head: ResponseHead) { watcher?.left(head) }
    func answered(_ head: ResponseHead) { watcher?.answered(head) }
    func measured(_ metrics: TransferMetrics) { watcher?.measured(metrics) }
    func hopIsOver() { watcher?.hopIsOver() }
}
