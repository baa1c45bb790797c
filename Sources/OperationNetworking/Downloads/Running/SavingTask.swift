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
        _ didSave: @escaping @Sendable (DownloadedFile) -> Void
    ) {
        let telling = SavingTell(receiver, didSave)
        self.telling = telling
        run = DownloadRun(
            request, over: session, with: download, watcher: (receiver as? any HopWatched)?.hopWatcher,
            // Those who have a say learn of each head, as soon as it is there.
            refuses: { (receiver as? AttemptReceiver)?.refuses($0) ?? false },
            mayLeave: { (receiver as? AttemptReceiver)?.taskMayLeave($0) ?? true },
            tellHead: { head, start in
                didStart(start)
                (receiver as? AttemptReceiver)?.foresee(head)
            },
            tellSent: { (receiver as? AttemptReceiver)?.sent($0, of: $1) },
            tellProgress: { (receiver as? AttemptReceiver)?.saved($0) },
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

/// Tells the receiver of a ``SavingTask`` what came of it, once.
private final class SavingTell: Sendable {
    private let receiver: any NetworkReceiver
    private let didSave: @Sendable (DownloadedFile) -> Void
    /// The task, from its beginning to its end: it keeps itself alive.
    private let state = Locked((task: SavingTask?.none, metrics: TransferMetrics?.none, hasEnded: false))

    init(_ receiver: any NetworkReceiver, _ didSave: @escaping @Sendable (DownloadedFile) -> Void) {
        self.receiver = receiver
        self.didSave = didSave
    }

    func begin(_ task: SavingTask) {
        state.withLock { state in
            if !state.hasEnded { state.task = task }
        }
    }

    /// Those of the last request are told, before the end.
    func keep(_ metrics: TransferMetrics) {
        state.withLock { $0.metrics = metrics }
    }

    func end(_ conclusion: DownloadConclusion) {
        let (task, metrics) = state.withLock { state in
            state.hasEnded = true
            return (exchange(&state.task, with: nil), state.metrics)
        }
        guard let task else { return }
        tellResponse(conclusion, task)
        if let metrics { receiver.task(task, didCollect: metrics) }
        if case .failed(let error) = conclusion {
            receiver.task(task, didEndWith: error)
        } else {
            receiver.task(task, didEndWith: nil)
        }
    }

    private func tellResponse(_ conclusion: DownloadConclusion, _ task: SavingTask) {
        switch conclusion {
        case .saved(let file, let head):
            didSave(file)
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

extension ResponseHead {
    /// The head as it would be of the whole file, where it is that of a part, or says that nothing is missing.
    func asWhole(length: Int64?) -> ResponseHead {
        guard status == 206 || status == 416 else { return self }
        var fields = headers
        fields.remove("Content-Range")
        fields["Content-Length"] = length.map { "\($0)" }
        return ResponseHead(
            url: url, status: 200, headers: fields, version: version, reason: reason, isDecoded: isDecoded)
    }
}
