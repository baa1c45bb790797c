// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore
import OperationNetworking
import Synchronization

/// Downloads all files: hands them to a queue, a few at a time, and waits for them.
final class Runner: Sendable {
    private struct State {
        var signal: Int32?
        /// Where files of this run lie by now.
        var places: Set<String> = []
    }

    private let items: [DownloadItem]
    private let client: Client
    private let reporter: Reporter
    private let queue: QueueManager
    private let state = Mutex(State())
    private let feeding = Mutex<Task<Void, Never>?>(nil)

    init(_ items: [DownloadItem], _ client: Client, _ reporter: Reporter) {
        self.items = items
        self.client = client
        self.reporter = reporter
        queue = QueueManager("opget", width: client.settings.jobs)
        // Of a long list only a few are made operations of at a time.
        queue.capacity = max(client.settings.jobs * 2, 16)
    }

    /// Stops in order: nothing more begins, and what was received stays.
    func interrupt(_ signal: Int32) {
        state.withLock { $0.signal = signal }
        feeding.withLock { $0 }?.cancel()
        queue.cancelAll()
    }

    private var isInterrupted: Bool { state.withLock { $0.signal != nil } }

    func run() async -> ExitStatus {
        let task = Task { await feed() }
        feeding.withLock { $0 = task }
        if isInterrupted { task.cancel() }
        await task.value
        if isInterrupted { queue.cancelAll() }
        await queue.drained()
        // The handlers were handed over before the operations ended.
        await withCheckedContinuation { continuation in client.callbacks.async { continuation.resume() } }
        return reporter.conclude(interruptedBy: state.withLock { $0.signal })
    }

    private func feed() async {
        for item in items {
            if isInterrupted { return }
            if let path = existing(item) {
                reporter.ended(item, .skipped(path: path))
                continue
            }
            do {
                try await queue.addWhenThereIsRoom(client.settings.segments > 1 ? segmented(item) : single(item))
                if items.count <= client.settings.jobs { reporter.began(item) }
            } catch {
                if isInterrupted { return }
                reporter.ended(item, .failed(FileFailure(.failure, "\(error.code)", error.message)))
            }
        }
    }

    // Places.

    private var directory: URL { URL(filePath: client.settings.directory, directoryHint: .isDirectory) }

    /// The file's name, if it does not depend on what the server says.
    private func knownName(_ item: DownloadItem) -> String? {
        item.name ?? (client.settings.usesRemoteName ? item.nameOfURL : nil)
    }

    private func place(_ name: String) -> URL {
        URL(filePath: name, directoryHint: .notDirectory, relativeTo: directory).absoluteURL
    }

    /// A file that is there already and is to be left alone; nil if there is none, as far as can be said without asking.
    private func existing(_ item: DownloadItem) -> String? {
        guard client.settings.existing == .skip else { return nil }
        let path = place(knownName(item) ?? item.nameOfURL).path
        let isOurs = state.withLock { $0.places.contains(path) }
        return !isOurs && FileManager.default.fileExists(atPath: path) ? path : nil
    }

    private func take(_ path: String) { state.withLock { _ = $0.places.insert(path) } }

    private func resultOfExisting(_ item: DownloadItem, _ path: String, _ failure: FileFailure) -> FileResult {
        if state.withLock({ $0.places.contains(path) }) {
            let message = "Another URL gave a file of the same name. Name it by out=NAME in a list."
            return .failed(FileFailure(.disk, failure.code, message))
        }
        return client.settings.existing == .skip ? .skipped(path: path) : .failed(failure)
    }

    // Operations.

    private func single(_ item: DownloadItem) -> ManagedOperation {
        let (operation, _) = download(item) { [reporter] result in reporter.ended(item, result) }
        return operation
    }

    /// A download in one stream: what the library does by itself.
    private func download(
        _ item: DownloadItem, whenDone: @escaping @Sendable (FileResult) -> Void
    ) -> (operation: NetworkDownloadOperation<URL>, destination: DownloadDestination) {
        let settings = client.settings
        let name = knownName(item)
        let destination: DownloadDestination = name.map { .file(place($0)) } ?? .folder(directory)
        // The request was made before, when the list was read.
        let request = (try? Client.request("GET", item.url, settings))
        let operation =
            request.map { NetworkDownloadOperation<URL>(request: $0, urlSession: client.session) { file, _ in file } }
            ?? NetworkDownloadOperation<URL>(url: item.url, urlSession: client.session) { file, _ in file }
        operation.destination = destination
        operation.downloadOptions.existingItem = settings.existing == .replace ? .replace : .refuse
        operation.downloadOptions.checksum = item.checksum
        operation.downloadOptions.isDurable = settings.isDurable
        operation.callbackQueue = client.callbacks
        client.prepare(operation, for: item)
        if settings.beginsAnew { _ = try? destination.removePart(of: item.url, options: operation.downloadOptions) }
        let hasBegun = Mutex(false)
        operation.onDownloadProgress { [reporter] operation, progress in
            if !hasBegun.withLock({ exchange(&$0, true) }), let start = operation.start {
                reporter.found(item, resumed: start.resumedBytes, discarded: start.discardedBytes)
            }
            reporter.advanced(item, to: progress.completedBytes, of: progress.totalBytes)
        }
        operation.retryHandler = { [reporter] in reporter.retried(item, $0) }
        operation.offlineHandler = { [reporter] in reporter.waitsForNetwork(item) }
        operation.onCompletion { [self] operation, error in
            whenDone(result(of: operation, item, error))
        }
        operation.cancellationHandler = { [self] cause in
            whenDone(isInterrupted ? .stopped : .failed(FileFailure(.failure, "\(cause.code)", cause.message)))
        }
        return (operation, destination)
    }

    private func result(
        of operation: NetworkOperation<URL, URL>, _ item: DownloadItem, _ error: NetworkError?
    ) -> FileResult {
        if let error {
            guard error.code == .destinationExists else { return .failed(FileFailure(error)) }
            let name = knownName(item) ?? operation.responseHead.map(DownloadFileName.name) ?? item.nameOfURL
            return resultOfExisting(item, place(name).path, FileFailure(error))
        }
        guard let file = (operation as? NetworkDownloadOperation<URL>)?.downloadedFile else {
            return .failed(FileFailure(.failure, "noFile", "The download ended without a file."))
        }
        take(file.url.path)
        return .done(
            FileReport(
                path: file.url.path, bytes: file.length, resumedBytes: file.resumedBytes,
                discardedBytes: file.discardedBytes))
    }

    private func segmented(_ item: DownloadItem) -> ManagedOperation {
        let job = SegmentedDownload(item: item, client: client, reporter: reporter) { [self] head in
            place(knownName(item) ?? DownloadFileName.name(for: head))
        }
        let operation = TaskOperation<Void, Never>(windsDownAfterCancellation: true) { [self] in
            switch await job.run() {
            case .result(let result):
                if case .done(let report) = result { take(report.path) }
                reporter.ended(item, result)
            case .single:
                let (operation, _) = download(item) { [reporter] in reporter.ended(item, $0) }
                await withTaskCancellationHandler {
                    operation.start()
                    await operation.ended()
                } onCancel: {
                    operation.cancel()
                }
            }
        }
        operation.name = item.shownURL
        return operation
    }
}

extension AnyNetworkOperation {
    /// What a download found of an earlier one.
    fileprivate var start: DownloadStart? { (self as? NetworkDownloadOperation<URL>)?.downloadStart }
}

private func exchange<Value>(_ place: inout Value, _ new: Value) -> Value {
    defer { place = new }
    return place
}
