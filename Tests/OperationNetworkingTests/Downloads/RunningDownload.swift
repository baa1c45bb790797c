// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.
import Foundation
import OperationNetworking
import OperationTestKit

/// A download and its result.
final class RunningDownload: Sendable {
    let task: DownloadTask
    private let client: Client

    /// The receiver of a download, which plays the part of an operation.
    private final class Client: DownloadHost {
        let end = Gate()
        /// The result, or `again` if there is none.
        let conclusion = Locked(DownloadConclusion.again)
        private let file = Locked<(file: DownloadedFile, published: FileStatus?)?>(nil)
        private let react: @Sendable (DownloadProgress) -> Void

        init(_ react: @escaping @Sendable (DownloadProgress) -> Void) { self.react = react }

        func didSave(_ saved: DownloadedFile, _ published: FileStatus?) { file.withLock { $0 = (saved, published) } }

        func saved(_ progress: DownloadProgress) {
            // The download reports the length of the file once more when the file is at its destination.
            if file.withLock({ $0 == nil }) { react(progress) }
        }

        func willReceive(_ head: ResponseHead) {}
        func refuses(_ head: ResponseHead) -> Bool { false }
        func sent(_ count: Int64, of total: Int64?) {}
        func mayPublish() -> Bool { true }

        func task(_ task: any NetworkTask, didReceive head: ResponseHead) {
            let saved = file.withLock { $0.map { DownloadConclusion.saved($0.file, head, $0.published) } }
            conclusion.withLock { $0 = saved ?? .answered(head, []) }
        }

        func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {
            conclusion.withLock { if case .answered(let head, let body) = $0 { $0 = .answered(head, body + bytes) } }
        }

        func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
            if let error { conclusion.withLock { $0 = .failed(error) } }
            end.open()
        }
    }

    init(
        _ request: NetworkRequest, over session: any NetworkSession, _ download: Download,
        _ react: @escaping @Sendable (DownloadProgress) -> Void
    ) {
        client = Client(react)
        task = DownloadTask(request, over: session, with: download, client, didSave: client.didSave)
    }

    /// Returns the result.
    ///
    /// If the time of the test is over, the result is `again`.
    func conclusion() async -> DownloadConclusion {
        await withTaskCancellationHandler {
            await client.end.passage()
        } onCancel: { [client] in
            client.end.open()
        }
        return client.conclusion.withLock { $0 }
    }
}
