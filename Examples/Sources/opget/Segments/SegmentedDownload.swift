// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationFiles
import OperationNetworking

/// A file that is downloaded in several pieces at a time, written to their places in one file.
///
/// The server is asked first (HEAD) whether that is possible: it must know ranges, the length, and a strong validator. Each
/// piece is asked for with `If-Range`, so that bytes of two versions never come into one file. What was received is only
/// thrown away when the server has said that there is another version of the file.
struct SegmentedDownload: Sendable {
    enum Outcome: Sendable {
        case result(FileResult)
        /// It must be asked for in one piece.
        case single
    }

    private enum Step: Sendable {
        case ended(FileResult)
        case single(String)
        /// The server is to be asked once more what there is.
        case askAgain
    }

    /// So often the file may change while it is downloaded.
    private static let rounds = 3

    let item: DownloadItem
    let client: Client
    let reporter: Reporter
    /// Where the file is to be, as a response says.
    let place: @Sendable (ResponseHead) -> URL
    /// What becomes of it if something is there already; nil if nothing is, or it is to be replaced.
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

    /// A server that stumbles gets a moment before it is asked anew, or what it asks for, within reason.
    private func pause(_ wanted: Duration?) async {
        try? await Task.sleep(for: min(max(wanted ?? .zero, .seconds(1)), .seconds(60)))
    }

    private func note(_ reason: String) { reporter.noted(item, "downloading in one stream, because \(reason).") }

    private func download(_ plan: SegmentedPlan, isFirst: Bool) async throws(FileFailure) -> Step {
        if settings.beginsAnew, isFirst { try SegmentNames(for: plan.place).remove() }
        let file = try SegmentedFile(for: plan.place, plan.metadata)
        // The library and handlers that are on their way may hold it for a while.
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
            let sum = try await outcome(of: FileChecksumOperation(file.partURL, algorithm: expected.algorithm)).get()
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
        // What the other pieces brought meanwhile is not given up for one such answer.
        case .sendsWhole? where file.writtenBytes > 0, .namesNoVersion? where file.writtenBytes > 0: return .askAgain
        case .sendsWhole?:
            file.discard()
            return .single("the server sends the whole file instead of a part")
        case .namesNoVersion?:
            file.discard()
            return .single("the server does not name the version of its parts")
        case .hasChanged?: return .askAgain
        case nil: break
        }
        // A file that became shorter has not the range any more; an address behind a redirect holds for some time only.
        if failure.status == 416 { return .askAgain }
        if plan.isRedirected, let status = failure.status, [401, 403, 404, 410].contains(status) { return .askAgain }
        throw failure.cause as? FileFailure ?? FileFailure(failure)
    }

    private enum PieceEnd: Sendable {
        case done
        case failed(NetworkError)
        /// The library ended it, or we did.
        case cancelled(CancellationCause)
    }

    /// Brings in what is missing, all pieces at a time; the first that does not come ends the others.
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

    /// Brings in one piece: as long as it gets on, its attempts are counted anew.
    private func piece(_ index: Int, of file: SegmentedFile, _ request: NetworkRequest) async -> PieceEnd {
        while true {
            let before = file.written(index)
            let operation = SegmentOperation(request, over: client.session, file: file, index: index) {
                // On one queue, so that what is told never goes backwards.
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
            // Also where the connection broke behind the last byte.
            if file.isComplete(index) { return .done }
            switch outcome {
            // Its collector gives nothing before the piece is complete.
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
