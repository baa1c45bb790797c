// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// A session whose responses lie at a destination on the disk before their end is told.
///
/// Whoever made a task is told the head and the end, and the bytes only of a response that is no file. For one task it may
/// make several requests.
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
        // What has no body is no file.
        if request.method == "HEAD" { return session.makeTask(with: request, receiver: receiver) }
        return SavingTask(request, session, makeDownload(request), receiver, didStart, didSave)
    }
}
