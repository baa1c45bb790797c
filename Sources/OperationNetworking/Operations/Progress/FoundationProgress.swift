// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Keeps a `Progress` of Foundation in step with an operation.
///
/// It counts the bytes of one direction: those of the request's body, if it has one, with one unit more for the answer to
/// it; else, and of a download in any case, those of the response's body. So it never runs backwards, and is finished when
/// the response is complete and not before. While the length of the body is not known both counts are zero, which is
/// indeterminate: Foundation on Linux traps on negative counts in a tree.
struct FoundationProgress: Sendable {
    let progress: Progress
    private let countsDownload: Bool

    init(for operation: any AnyNetworkOperation) {
        // Not a child of whatever progress is current on this thread.
        progress = Progress(parent: nil)
        countsDownload = operation is any SavingOperation
        progress.isCancellable = true
        progress.isPausable = true
        progress.cancellationHandler = { [weak operation] in operation?.cancel() }
        progress.pausingHandler = { [weak operation] in operation?.suspendExecution() }
        progress.resumingHandler = { [weak operation] in operation?.resumeExecution() }
    }

    /// Called by one thread at a time.
    func update(upload: TransferProgress, download: TransferProgress, isComplete: Bool) {
        let isUpload = !countsDownload && (upload.completedBytes > 0 || upload.totalBytes ?? 0 > 0)
        let body = isUpload ? upload : download
        let answer: Int64 = isUpload ? 1 : 0
        if isComplete {
            // At least one unit, for what has none is never finished.
            finish(at: max(body.completedBytes.addingSaturated(answer), progress.totalUnitCount, 1))
        } else if let length = body.totalBytes, length > 0 {
            let total = length.addingSaturated(answer)
            if total > progress.totalUnitCount { progress.totalUnitCount = total }
            let done = min(body.completedBytes, length)
            if done > progress.completedUnitCount { progress.completedUnitCount = done }
        }
    }

    private func finish(at total: Int64) {
        if progress.totalUnitCount != total { progress.totalUnitCount = total }
        if progress.completedUnitCount != total { progress.completedUnitCount = total }
    }
}
