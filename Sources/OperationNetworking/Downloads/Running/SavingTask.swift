// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// A download as a task: one head, one end, and whatever requests it takes beneath.
final class SavingTask: NetworkTask {
    private let run: DownloadRun
    private let telling: SavingTell

    init(
        _ request: NetworkRequest, _ session: any NetworkSession, _ download: Download,
        _ receiver: any NetworkReceiver, _ didSave: @escaping @Sendable (DownloadedFile) -> Void
    ) {
        let telling = SavingTell(receiver, didSave)
        self.telling = telling
        run = DownloadRun(
            request, over: session, with: download,
            tellProgress: { (receiver as? AttemptReceiver)?.saved($0) },
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

    // What comes in is held where the disk is slower, and the receiver gets none of it.
    func hold() {}
    func proceed() {}
}

/// Tells the receiver of a ``SavingTask`` what came of it, once.
private final class SavingTell: Sendable {
    private let receiver: any NetworkReceiver
    private let didSave: @Sendable (DownloadedFile) -> Void
    /// The task, from its beginning to its end: it keeps itself alive.
    private let state = Locked((task: SavingTask?.none, hasEnded: false))

    init(_ receiver: any NetworkReceiver, _ didSave: @escaping @Sendable (DownloadedFile) -> Void) {
        self.receiver = receiver
        self.didSave = didSave
    }

    func begin(_ task: SavingTask) {
        state.withLock { state in
            if !state.hasEnded { state.task = task }
        }
    }

    func end(_ conclusion: DownloadConclusion) {
        let task = state.withLock { state in
            state.hasEnded = true
            return exchange(&state.task, with: nil)
        }
        guard let task else { return }
        switch conclusion {
        case .saved(let file, let head):
            didSave(file)
            receiver.task(task, didReceive: head.asWhole(length: file.length))
            receiver.task(task, didEndWith: nil)
        case .answered(let head, let body):
            receiver.task(task, didReceive: head)
            if !body.isEmpty { body.withUnsafeBytes { receiver.task(task, didReceive: $0) } }
            receiver.task(task, didEndWith: nil)
        case .failed(let error): receiver.task(task, didEndWith: error)
        case .again:
            receiver.task(
                task,
                didEndWith: NetworkError(
                    code: .changedOnServer, phase: .receiving, message: "The file changed while it was downloaded."))
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
