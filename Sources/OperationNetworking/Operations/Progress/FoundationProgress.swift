// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Keeps a `Progress` of Foundation in step with an operation.
///
/// Its counts are in bytes, both directions together as far as they are known. Until one is, and while one is not, both
/// counts are zero, which is indeterminate: Foundation on Linux traps on negative counts in a tree.
struct FoundationProgress: Sendable {
    let progress: Progress

    init(for operation: any AnyNetworkOperation) {
        progress = Progress(totalUnitCount: 0)
        progress.isCancellable = true
        progress.isPausable = true
        progress.cancellationHandler = { [weak operation] in operation?.cancel() }
        progress.pausingHandler = { [weak operation] in operation?.suspendExecution() }
        progress.resumingHandler = { [weak operation] in operation?.resumeExecution() }
    }

    /// Called by one thread at a time.
    func update(upload: TransferProgress, download: TransferProgress) {
        let (sent, received) = (upload.completedBytes, download.completedBytes)
        // Nothing is known of a body before its first byte; a request without a body never has one.
        let toSend = upload.totalBytes ?? (sent > 0 ? nil : 0)
        let toReceive = download.totalBytes ?? (received > 0 ? nil : 0)
        guard let toSend, let toReceive else { return }
        let (total, isTooMany) = toSend.addingReportingOverflow(toReceive)
        guard !isTooMany, total > 0 else { return }
        if progress.totalUnitCount != total { progress.totalUnitCount = max(total, progress.totalUnitCount) }
        let done = min(sent + received, progress.totalUnitCount)
        if done > progress.completedUnitCount { progress.completedUnitCount = done }
    }
}
