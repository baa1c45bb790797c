// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// A download of a file in several segments at the same time, all of which are written to one file.
///
/// opget first sends a HEAD request. The server must support ranges, and report the length and a strong validator. Each
/// request for a segment contains `If-Range`, so that the file never contains bytes of two versions. opget discards
/// received bytes only if the server reports another version of the file.
struct SegmentedDownload: Sendable {
    enum Outcome: Sendable {
        case result(FileResult)
        /// The file must be downloaded in one stream.
        case single
    }

    private enum Step: Sendable {
        case ended(FileResult)
        case single(String)
        /// Another HEAD request must determine the current state of the file.
        case askAgain
    }

    /// The maximum number of times that the file can change during the download.
    private static let rounds = 3

    let item: DownloadItem
    let client: Client
    let reporter: Reporter
    /// A closure that returns the destination of the file for a response.
    let place: @Sendable (ResponseHead) -> URL
    /// A closure that returns the result for an existing file, or nil if opget can write the file.
    let existing: @Sendable (URL) async -> FileResult?

    private var settings: Settings { client.settings }

    func run() async -> Outcome {
        do throws(FileFailure) {
            for round in 1...Self.rounds {
                let plan: SegmentedPlan
                switch try await SegmentProbe(item: item, client: client, reporter: reporter, place: place).ask() {
                case .cancelled: return .result(.stopped)
                case .single(let reason):
                    if let reason { note(reason) }
                    return .single
                case .pieces(let planned): plan = planned
                }
                if let result = await existing(plan.place) { return .result(result) }
                switch try await download(plan, isFirst: round == 1) {
                case .ended(let result): return .result(result)
                case .single(let reason):
                    note(reason)
                    return .single
                case .askAgain: await pause(nil)
                }
            }
            throw FileFailure(
                .server, "changesAgain",
                "The file or its URL changed on the server during the download. Run opget again later.")
        } catch {
            return .result(Task.isCancelled ? .stopped : .failed(error))
        }
    }

    /// Waits before the next request, for at least one second and for as long as the server requests, up to one minute.
    private func pause(_ wanted: Duration?) async {
        try? await Task.sleep(for: min(max(wanted ?? .zero, .seconds(1)), .seconds(60)))
    }

    private func note(_ reason: String) { reporter.noted(item, "downloading in one stream, because \(reason).") }

    private func download(_ plan: SegmentedPlan, isFirst: Bool) async throws(FileFailure) -> Step {
        if settings.beginsAnew, isFirst { try SegmentNames(for: plan.place).remove() }
        let file = try SegmentedFile(for: plan.place, plan.metadata)
        // The library and pending handlers might keep the file open for a while.
        defer { file.letGo() }
        reporter.found(item, resumed: file.resumedBytes, discarded: file.discardedBytes)
        if file.resumedBytes > 0 { reporter.advanced(item, to: file.resumedBytes, of: plan.metadata.total) }
        switch await transfer(file, plan.request) {
        case .done: break
        case _ where Task.isCancelled: return .ended(.stopped)
        case .cancelled(let cause): throw FileFailure(.failure, "\(cause.code)", cause.message)
        case .failed(let failure): return try step(after: failure, plan, file)
        }
        if let expected = item.checksum {
            let sum = try await checksum(of: file.partURL, expected.algorithm).get()
            guard sum == expected else {
                file.discard()
                throw FileFailure(
                    .checksum, "checksumMismatch",
                    "The file does not have the expected \(expected.algorithm) checksum, and was removed.")
            }
        }
        try await file.publish(at: plan.place, replacing: settings.existing == .replace, isDurable: settings.isDurable)
        return .ended(
            .done(FileReport(path: plan.place.path, bytes: plan.metadata.total, segments: file.metadata.spans.count)))
    }

    private func step(
        after failure: NetworkError, _ plan: SegmentedPlan, _ file: SegmentedFile
    ) throws(FileFailure) -> Step {
        switch failure.cause as? SegmentProblem {
        // The bytes of the other segments are kept after one unexpected response.
        case .sendsWhole? where file.writtenBytes > 0, .namesNoVersion? where file.writtenBytes > 0: return .askAgain
        case .sendsWhole?:
            file.discard()
            return .single("the server sends the whole file instead of a part")
        case .namesNoVersion?:
            file.discard()
            return .single("the server does not identify the version of a part")
        case .hasChanged?: return .askAgain
        case nil: break
        }
        // If a file has become shorter, the range no longer exists. A URL after a redirect is often valid for only a
        // short time.
        if failure.status == 416 { return .askAgain }
        if plan.isRedirected, let status = failure.status, [401, 403, 404, 410].contains(status) { return .askAgain }
        throw failure.cause as? FileFailure ?? FileFailure(failure)
    }

    private enum PieceEnd: Sendable {
        case done
        case failed(NetworkError)
        /// OperationKit or opget canceled the operation.
        case cancelled(CancellationCause)
    }

    /// Downloads all missing segments at the same time, and cancels the others if one of them fails.
    private func transfer(_ file: SegmentedFile, _ request: NetworkRequest) async -> PieceEnd {
        await withTaskGroup(of: PieceEnd.self) { group in
            for index in file.metadata.spans.indices where !file.isComplete(index) {
                group.addTask { await piece(index, of: file, request) }
            }
            var result = PieceEnd.done
            for await end in group {
                guard case .done = result else { continue }
                result = end
                if case .done = end { continue }
                group.cancelAll()
            }
            return result
        }
    }

    /// Downloads one segment, and starts counting attempts again after each attempt that makes progress.
    private func piece(_ index: Int, of file: SegmentedFile, _ request: NetworkRequest) async -> PieceEnd {
        while true {
            let before = file.written(index)
            let operation = SegmentOperation(request, over: client.session, file: file, index: index) {
                // One serial queue ensures that the reported progress never decreases.
                client.callbacks.async { reporter.advanced(item, to: file.writtenBytes, of: file.metadata.total) }
            }
            operation.callbackQueue = client.callbacks
            client.prepare(operation, for: item)
            operation.retryHandler = { reporter.retried(item, $0) }
            let outcome = await withTaskCancellationHandler {
                operation.start()
                return await operation.finalOutcome
            } onCancel: {
                operation.cancel()
            }
            await operation.settled()
            // The segment can be complete even if the connection failed after the last byte.
            if file.isComplete(index) { return .done }
            switch outcome {
            // The collector returns a result only if the segment is complete.
            case .success: continue
            case .cancelled(let cause): return .cancelled(cause)
            case .failure(let error):
                let gotOn = file.written(index) >= before + Client.leastProgress
                guard gotOn, !Task.isCancelled, client.ranOutOfAttempts(error) else { return .failed(error) }
                await pause(error.retryAfter)
                if Task.isCancelled { return .failed(error) }
            }
        }
    }
}
