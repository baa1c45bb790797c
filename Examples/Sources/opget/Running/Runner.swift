// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore
import OperationNetworking
import Synchronization

/// A runner that adds the downloads of all files to a queue, a few at a time, and waits until they end.
final class Runner: Sendable {
    private let items: [DownloadItem]
    private let client: Client
    private let reporter: Reporter
    private let queue: QueueManager
    private let places: FilePlaces
    private let signal = Mutex<Int32?>(nil)
    private let feeding = Mutex<Task<Void, Never>?>(nil)

    init(_ items: [DownloadItem], _ client: Client, _ reporter: Reporter) {
        self.items = items
        self.client = client
        self.reporter = reporter
        places = FilePlaces(client.settings)
        queue = QueueManager("opget", width: client.settings.jobs)
        // The limit keeps the number of operations small, even for a long list. There is room for a batch while all
        // slots of the queue are in use.
        queue.capacity = client.settings.jobs + 2 * Self.batchSize
    }

    /// The number of operations that are added together, so that not every end of a download wakes this program's task.
    private static let batchSize = 8

    /// Cancels all downloads and starts no others, but keeps the received bytes.
    func interrupt(_ number: Int32) {
        signal.withLock { $0 = number }
        feeding.withLock { $0 }?.cancel()
        queue.cancelAll()
    }

    private var isInterrupted: Bool { signal.withLock { $0 != nil } }

    func run() async -> ExitStatus {
        let task = Task { await feed() }
        feeding.withLock { $0 = task }
        if isInterrupted { task.cancel() }
        await task.value
        if isInterrupted { queue.cancelAll() }
        await queue.drained()
        await handlersCalled()
        return reporter.conclude(interruptedBy: signal.withLock { $0 })
    }

    /// Waits until the handlers of ended operations have run, which were enqueued before the operations ended.
    private func handlersCalled() async {
        await withCheckedContinuation { continuation in client.callbacks.async { continuation.resume() } }
    }

    private func feed() async {
        var batch: [(item: DownloadItem, operation: ManagedOperation)] = []
        for item in items {
            if isInterrupted { return }
            guard let operation = operation(for: item) else { continue }
            batch.append((item, operation))
            if batch.count == Self.batchSize { await add(exchange(&batch, with: [])) }
        }
        await add(batch)
    }

    private func add(_ batch: [(item: DownloadItem, operation: ManagedOperation)]) async {
        do {
            try await queue.addWhenThereIsRoom(batch.map(\.operation))
        } catch {
            if isInterrupted { return }
            for (item, _) in batch {
                reporter.ended(item, .failed(FileFailure(.failure, "\(error.code)", error.message)))
            }
        }
    }

    /// Returns the operation that downloads a file, or reports a result and returns nil if no download is necessary.
    private func operation(for item: DownloadItem) -> ManagedOperation? {
        let known = places.known(for: item)
        if let known, !places.claim(known, for: item) {
            reporter.ended(item, .failed(.nameTwice))
            return nil
        }
        let settings = client.settings
        let segments = places.segments(of: item, at: places.expected(for: item))
        if settings.existing == .skip, item.checksum == nil {
            let expected = places.expected(for: item)
            if places.isOld(expected, for: item) {
                segments?.removeOrphan()
                reporter.ended(item, .skipped(path: expected.path))
                return nil
            }
        }
        let isInPieces = settings.segments > 1 || segments?.exist == true
        let asksBack =
            settings.existing == .skip && item.checksum != nil || settings.existing == .replace && known == nil
        if !isInPieces, !asksBack { return stream(item) }
        let operation = TaskOperation<Void, Never>(windsDownAfterCancellation: true) { [self] in
            reporter.ended(item, await carryOut(item, isInPieces: isInPieces))
        }
        operation.name = item.shownURL
        // The operation waits for its category here, where it does not use a slot. Segments wait individually.
        if !isInPieces { operation.categories = [client.category(of: item)] }
        return operation
    }

    // Downloads of one file, step by step.

    private func carryOut(_ item: DownloadItem, isInPieces: Bool) async -> FileResult {
        reporter.began(item)
        let expected = places.expected(for: item)
        if client.settings.existing == .skip, places.isOld(expected, for: item) {
            return await places.resultOfExisting(item, expected)
        }
        if isInPieces, let result = await inPieces(item) { return result }
        switch await streamed(item, waitsForHost: isInPieces) {
        case .ended(let result): return result
        case .exists(let place) where client.settings.existing == .replace:
            // Only the response determines which file to replace. The file must be older than this run.
            guard places.wasThere(place, for: item), places.claim(place, for: item) else {
                _ = try? DownloadDestination.folder(places.directory).removePart(of: item.url)
                return .failed(.nameTwice)
            }
            guard case .ended(let result) = await streamed(item, to: place, waitsForHost: isInPieces) else {
                return .failed(.exists(place.lastPathComponent))
            }
            return result
        case .exists(let place): return await places.resultOfExisting(item, place)
        }
    }

    /// Downloads a file in segments, or returns nil if this is not possible.
    private func inPieces(_ item: DownloadItem) async -> FileResult? {
        let job = SegmentedDownload(
            item: item, client: client, reporter: reporter, place: { [places] in places.place(of: item, $0) },
            existing: { [places, client] place in
                guard places.claim(place, for: item) else { return .failed(.nameTwice) }
                if client.settings.existing == .replace || !places.isThere(place) { return nil }
                return await places.resultOfExisting(item, place)
            })
        let outcome = await job.run()
        // Progress reports for the last bytes come before the result.
        await handlersCalled()
        guard case .result(let result) = outcome else { return nil }
        if case .done(let report) = result {
            places.take(report.path)
            // A partial file of an earlier run without segments is no longer necessary.
            let place = URL(filePath: report.path)
            for destination in [.file(place), .folder(places.directory)] as [DownloadDestination] {
                _ = try? destination.removePart(of: item.url)
            }
        }
        return result
    }

    private func streamed(_ item: DownloadItem, to place: URL? = nil, waitsForHost: Bool) async -> StreamEnd {
        let end = Mutex<StreamEnd?>(nil)
        guard let operation = download(item, to: place, whenDone: { new in end.withLock { $0 = $0 ?? new } }) else {
            return end.withLock { $0 }
                ?? .ended(.failed(FileFailure(.usage, "invalidURL", "The request cannot be created.")))
        }
        // The operation that waits for this download might already hold the category of the host.
        if !waitsForHost { operation.categories = [] }
        await withTaskCancellationHandler {
            operation.start()
            await operation.ended()
        } onCancel: {
            operation.cancel()
        }
        await handlersCalled()
        return end.withLock { $0 } ?? .ended(.stopped)
    }

    // Downloads in one stream.

    /// The result of a download in one stream.
    private enum StreamEnd: Sendable {
        case ended(FileResult)
        /// A file already exists at the destination.
        case exists(URL)
    }

    /// Returns a download in one stream that reports its own result.
    private func stream(_ item: DownloadItem) -> ManagedOperation? {
        download(item) { [reporter, places] end in
            switch end {
            case .ended(let result): reporter.ended(item, result)
            case .exists(let place): reporter.ended(item, places.resultOfUnchecked(place, for: item))
            }
        }
    }

    /// Returns a download in one stream, for which OperationKit needs no help.
    ///
    /// If the bytes of earlier runs cannot be removed for `--fresh`, the method reports a failure and returns nil.
    ///
    /// - Parameters:
    ///   - replaced: The destination whose file the download replaces. If this is nil, the user or the server
    ///     determines the name of the file.
    ///   - whenDone: A closure that is called with the result. If the operation is canceled after a success was
    ///     reported, the closure is called again and must ignore the second result.
    private func download(
        _ item: DownloadItem, to replaced: URL? = nil, whenDone: @escaping @Sendable (StreamEnd) -> Void
    ) -> NetworkDownloadOperation<URL>? {
        let settings = client.settings
        let known = replaced ?? places.known(for: item)
        let destination: DownloadDestination = known.map { .file($0) } ?? .folder(places.directory)
        // Reading the list has already created the same request successfully.
        guard let request = try? Client.request("GET", item.url, settings) else { return nil }
        var options = DownloadOptions()
        options.existingItem = settings.existing == .replace && known != nil ? .replace : .refuse
        options.checksum = item.checksum
        options.isDurable = settings.isDurable
        // The download itself reports an item at the destination that is not a file.
        if settings.beginsAnew, known.map({ !places.isThere($0) || places.isFile($0) }) ?? true {
            do {
                try destination.removePart(of: item.url, options: options)
                try SegmentNames(for: places.expected(for: item)).remove()
            } catch {
                let failure = error as? FileFailure ?? FileFailure(NetworkError(error))
                whenDone(.ended(.failed(failure)))
                return nil
            }
        }
        let reportSuccess = Mutex<(@Sendable () -> Void)?>(nil)
        let operation = NetworkDownloadOperation<URL>(request: request, urlSession: client.session) { response in
            reportSuccess.withLock { $0 }?()
            return response.body
        }
        operation.destination = destination
        operation.downloadOptions = options
        operation.callbackQueue = client.callbacks
        client.prepare(
            operation, for: item, limitsHost: settings.jobs > settings.perHost || places.hasSegments)
        let starts = DownloadStarts(item, reporter)
        if reporter.showsProgress {
            operation.addNetworkObserver(DownloadObserver { [reporter] in reporter.began(item) })
            operation.onDownloadProgress { [reporter] operation, progress in
                starts.note(operation)
                reporter.advanced(item, to: progress.completedBytes, of: progress.totalBytes)
            }
        }
        operation.retryHandler = { [reporter] in reporter.retried(item, $0) }
        operation.offlineHandler = { [reporter] in reporter.waitsForNetwork(item) }
        // If a signal arrives after the file is complete, a handler would not be called.
        let observation = operation.observe { [self, weak operation] outcome in
            if let cause = outcome.cancellationCause {
                let failure = FileFailure(.failure, "\(cause.code)", cause.message)
                return whenDone(.ended(isInterrupted ? .stopped : .failed(failure)))
            }
            // The operation lives until it has notified its observers of a result or an error.
            guard let operation else { return }
            starts.note(operation)
            whenDone(end(of: operation, item, known, outcome.error))
        }
        // Reports of progress come before the result. Without such reports, the thread that evaluates the response also
        // reports the success, because waking the thread of the queue for handlers takes longer.
        if reporter.showsProgress { return operation }
        let report = { @Sendable [self, weak operation] in
            guard let operation, operation.downloadedFile != nil else { return }
            starts.note(operation)
            whenDone(end(of: operation, item, known, nil))
            observation.cancel()
        }
        reportSuccess.withLock { $0 = report }
        return operation
    }

    private func end(
        of operation: NetworkOperation<URL, URL>, _ item: DownloadItem, _ place: URL?, _ error: NetworkError?
    ) -> StreamEnd {
        if let error {
            guard error.code == .destinationExists else { return .ended(.failed(FileFailure(error))) }
            let answered = operation.responseHead.map { places.place(of: item, $0) }
            return .exists(place ?? answered ?? places.expected(for: item))
        }
        guard let file = (operation as? NetworkDownloadOperation<URL>)?.downloadedFile else {
            return .ended(.failed(FileFailure(.failure, "noFile", "The download ended without a file.")))
        }
        let path = file.url.path
        places.take(path)
        // A partial file of an earlier run with segments is no longer necessary.
        try? places.segments(of: item, at: file.url)?.remove()
        return .ended(.done(FileReport(path: path, bytes: file.length)))
    }
}
