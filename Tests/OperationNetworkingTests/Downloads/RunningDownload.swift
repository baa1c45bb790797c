// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.
import OperationNetworking
import OperationTestKit

/// A download and its result.
final class RunningDownload: Sendable {
    let run: DownloadRun
    private let end = End()

    private final class End: Sendable {
        let gate = Gate()
        let conclusion = Locked<DownloadConclusion?>(nil)
    }

    init(
        _ request: NetworkRequest, over session: any NetworkSession, _ download: Download,
        _ react: @escaping @Sendable (DownloadProgress) -> Void
    ) {
        var callbacks = DownloadCallbacks { [end] conclusion in
            end.conclusion.withLock { $0 = conclusion }
            end.gate.open()
        }
        callbacks.reportProgress = react
        run = DownloadRun(request, over: session, with: download, callbacks)
    }

    /// Returns the result.
    ///
    /// If the time of the test is over, the result is `again`.
    func conclusion() async -> DownloadConclusion {
        await withTaskCancellationHandler {
            await end.gate.passage()
        } onCancel: { [end] in
            end.gate.open()
        }
        return end.conclusion.withLock { $0 } ?? .again
    }
}
