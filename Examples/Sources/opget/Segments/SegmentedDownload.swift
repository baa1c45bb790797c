// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// A file that is downloaded in several pieces at a time, written to their places in one file.
///
/// The server is asked first (HEAD) whether that is possible: it must know ranges, the length, and a strong validator. Each
/// piece is asked for with `If-Range`, so that bytes of two versions never come into one file.
struct SegmentedDownload: Sendable {
    enum Outcome: Sendable {
        case result(FileResult)
        /// It must be asked for in one piece.
        case single
    }

    private struct Plan {
        let place: URL
        let card: SegmentCard
    }

    let item: DownloadItem
    let client: Client
    let reporter: Reporter
    let place: @Sendable (ResponseHead) -> URL

    private var settings: Settings { client.settings }

    func run() async -> Outcome {
        do throws(FileFailure) {
            guard let plan = try await plan() else { return Task.isCancelled ? .result(.stopped) : .single }
            if FileManager.default.fileExists(atPath: plan.place.path), settings.existing != .replace {
                guard settings.existing == .skip else {
                    let error = NetworkError(
                        code: .destinationExists, phase: .saving,
                        message: "There is a file \(plan.place.lastPathComponent) already.")
                    throw FileFailure(error)
                }
                return .result(.skipped(path: plan.place.path))
            }
            return try await download(plan)
        } catch {
            return .result(Task.isCancelled ? .stopped : .failed(error))
        }
    }

    /// What is to be done; nil if it cannot be done in pieces, or it was cancelled.
    private func plan() async throws(FileFailure) -> Plan? {
        guard let request = try? Client.request("HEAD", item.url, settings) else { return nil }
        let probe = NetworkDataOperation<Bool>(request: request, urlSession: client.session) { _, _ in true }
        probe.callbackQueue = client.callbacks
        probe.responseRules.contentTypes = .any
        client.prepare(probe, for: item)
        probe.retryHandler = { [item, reporter] in reporter.retried(item, $0) }
        switch await withTaskCancellationHandler(
            operation: { () async in await started(probe) }, onCancel: { probe.cancel() })
        {
        case .success: break
        case .failure(let error):
            // Servers that know no HEAD may know the file.
            if error.code == .unacceptableStatus { return nil }
            throw FileFailure(error)
        case .cancelled: return nil
        }
        guard let head = probe.responseHead, head.status == 200, let total = head.expectedLength,
            head.headers.values("Accept-Ranges").contains(where: { $0.lowercased().contains("bytes") }),
            !head.headers.contains("Content-Encoding"), let validator = SegmentValidator(head.headers)
        else { return nil }
        let place = place(head)
        let ranges = SegmentPlan.ranges(total: total, count: settings.segments)
        guard ranges.count > 1 || SegmentedFile.exists(for: place) else { return nil }
        let source = SegmentCard.hash(item.url.absoluteString.utf8)
        let spans = ranges.map { SegmentCard.Span(start: $0.lowerBound, end: $0.upperBound) }
        return Plan(
            place: place, card: SegmentCard(source: source, validator: validator, total: total, spans: spans))
    }

    private func started<Value>(
        _ operation: NetworkDataOperation<Value>
    ) async -> OperationOutcome<Value, NetworkError> {
        operation.start()
        return await operation.finalOutcome
    }

    private func download(_ plan: Plan) async throws(FileFailure) -> Outcome {
        if settings.beginsAnew { SegmentedFile.remove(for: plan.place) }
        let file = try SegmentedFile(for: plan.place, plan.card)
        reporter.found(item, resumed: file.resumedBytes, discarded: file.discardedBytes)
        if file.resumedBytes > 0 { reporter.advanced(item, to: file.resumedBytes, of: plan.card.total) }
        let failure = await transfer(file)
        if Task.isCancelled { return .result(.stopped) }
        if let failure {
            if let problem = failure.cause as? SegmentProblem {
                // Another version, or a server that does not do what it said: all of it, in one piece.
                let received = file.writtenBytes
                file.discard()
                reporter.found(item, resumed: 0, discarded: max(received, 1))
                reporter.noted(item, "one piece at a time, for \(problem.reason).")
                return .single
            }
            throw failure.cause as? FileFailure ?? FileFailure(failure)
        }
        if let expected = item.checksum {
            let sum = try await outcome(of: FileChecksumOperation(file.partURL, algorithm: expected.algorithm)).get()
            guard sum == expected else {
                file.discard()
                throw FileFailure(
                    .checksum, "checksumMismatch",
                    "The file does not have the \(expected.algorithm) checksum that was expected, and was removed.")
            }
        }
        try await file.publish(at: plan.place, replacing: settings.existing == .replace, isDurable: settings.isDurable)
        return .result(
            .done(
                FileReport(
                    path: plan.place.path, bytes: plan.card.total, resumedBytes: file.resumedBytes,
                    discardedBytes: file.discardedBytes, segments: file.card.spans.count)))
    }

    /// Brings in what is missing, all pieces at a time; the first failure ends the others.
    private func transfer(_ file: SegmentedFile) async -> NetworkError? {
        let total = file.card.total
        let missing = file.card.spans.indices.filter { file.written($0) < file.card.spans[$0].count }
        guard let request = try? Client.request("GET", item.url, settings) else { return nil }
        return await withTaskGroup(of: NetworkError?.self) { group in
            for index in missing {
                group.addTask {
                    let operation = SegmentOperation(request, over: client.session, file: file, index: index) {
                        reporter.advanced(item, to: file.writtenBytes, of: total)
                    }
                    operation.callbackQueue = client.callbacks
                    client.prepare(operation, for: item)
                    operation.retryHandler = { reporter.retried(item, $0) }
                    return await withTaskCancellationHandler {
                        operation.start()
                        return await operation.finalOutcome.error
                    } onCancel: {
                        operation.cancel()
                    }
                }
            }
            var first: NetworkError?
            for await error in group where error != nil && first == nil {
                first = error
                group.cancelAll()
            }
            return first
        }
    }
}
