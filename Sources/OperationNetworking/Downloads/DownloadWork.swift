// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The file work of one download, which carries out the decisions of the ``DownloadMachine`` on disk.
///
/// The class is not `Sendable` on purpose. All calls are made on the queue of the download and may block for the disk.
package final class DownloadWork {
    /// The default number of bytes to keep of a response that is not the file.
    package static let usualKeptBytes = 64 << 10
    /// The maximum number of bytes to read of a response that is not the file.
    private static let readLimit = 1 << 20

    private let destination: DownloadDestination
    private let options: DownloadOptions
    private let clock: any OperationClock
    /// Whether the download was canceled.
    ///
    /// The download's queue reads the flag during long work, and once more immediately before it moves the file to its
    /// destination.
    private let cancellation: OneWayFlag
    /// Whether a response with these headers is the file, so that its body may be written to the destination.
    private let accepts: @Sendable (ResponseHead) -> Bool
    private let keptBytes: Int
    private var source = ""
    private var machine: DownloadMachine?
    private var store: DownloadStore?
    private var head: ResponseHead?
    private var keptBody: [UInt8] = []
    /// The number of bytes that were received of a response that is not the file.
    private var strayCount = 0
    private var lastCheckpoint: OperationInstant
    /// The number of bytes of an earlier download that the current response continues.
    private var resumed: Int64 = 0
    /// The number of bytes of an earlier download that were discarded.
    private var discarded: Int64 = 0
    /// Whether the current response continues the previous one, which the server did not send completely.
    private var isContinuation = false

    package init(
        to destination: DownloadDestination, options: DownloadOptions = DownloadOptions(),
        clock: any OperationClock = .system,
        cancellation: OneWayFlag = OneWayFlag(), keptBytes: Int = DownloadWork.usualKeptBytes,
        accepts: @escaping @Sendable (ResponseHead) -> Bool = { _ in true }
    ) {
        self.accepts = accepts
        self.keptBytes = min(max(keptBytes, 0), Self.readLimit)
        self.destination = destination
        self.options = options
        self.clock = clock
        self.cancellation = cancellation
        lastCheckpoint = clock.now
    }

    /// The headers of the response if it is the file, as they would be for the whole file.
    package var presentHead: ResponseHead? { machine?.hasFile == true ? head?.asWhole(length: nil) : nil }

    /// Whether the current response is unusable, so that another request is sent.
    package var asksFromStart: Bool { machine?.isAskingFromStart == true }

    /// The bytes of an earlier download that were resumed or discarded.
    package var start: DownloadStart { DownloadStart(resumedBytes: resumed, discardedBytes: discarded) }

    /// The number of bytes in the partial file, and the total number.
    package var progress: DownloadProgress {
        DownloadProgress(received: store?.length ?? 0, total: store?.part?.metadata.total)
    }

    /// Prepares the files for a request, and returns the request to send.
    package func prepare(_ request: NetworkRequest) throws(NetworkError) -> NetworkRequest {
        head = nil
        keptBody = []
        strayCount = 0
        let resumes = request.method == "GET" && !request.headers.contains("Range")
        let source = DownloadNames.source(of: request, options)
        if machine == nil || source != self.source {
            machine = DownloadMachine(
                source: source, options: options, resumes: resumes, takesEveryStatus: destination.isTemporary)
            self.source = source
        }
        do throws(FileOperationError) {
            if store == nil { store = try makeStore(resumes) }
        } catch {
            throw NetworkError(error)
        }
        var headers = request.headers
        if !headers.contains("Accept-Encoding") { headers.add("Accept-Encoding", "identity") }
        // All other parts were validated before.
        guard case .rest(let offset, let validator)? = machine?.ask(havingPart: store?.part) else {
            return NetworkRequest(request, checkedHeaders: headers)
        }
        headers["Range"] = "bytes=\(offset)-"
        headers["If-Range"] = validator.field
        return try NetworkRequest(
            request.method, url: request.url, headers: headers, body: request.body, options: request.options)
    }

    private func makeStore(_ resumes: Bool) throws(FileOperationError) -> DownloadStore {
        do throws(FileOperationError) {
            return try DownloadStore(destination, source: source, options: options)
        } catch {
            // A request for the same URL, perhaps with another body, is a different download whose file may get another
            // name. That download can never be resumed, so its partial file needs no name that is found again.
            guard !resumes, error.code == .busy, destination.isFolder else { throw error }
            let name = UUID().uuidString
            return try DownloadStore(destination, source: name, options: options)
        }
    }

    /// Processes the headers of a response, and returns `false` if the request must be ended.
    ///
    /// - Parameter refuses: A closure that returns whether the response must not be written to the destination.
    package func receive(_ head: ResponseHead, refuses: (ResponseHead) -> Bool = { _ in false }) -> Bool {
        self.head = head
        if !isAcceptable(head, refuses) {
            machine?.leaveResponse()
            return true
        }
        guard let action = machine?.receive(head) else { return false }
        let continues = exchange(&isContinuation, with: false)
        switch action {
        case .begin(var metadata):
            metadata.fileName = DownloadFileName.name(for: head)
            resumed = 0
            let isFree = put(keepsPart: true) { store throws(FileOperationError) in
                // This error would otherwise occur at the end.
                try store.checkPlace(for: metadata)
            }
            guard isFree else { return false }
            recordLoss()
            return put { store throws(FileOperationError) in try store.begin(metadata) } && hasRoom(for: metadata)
        case .resume(let offset, let metadata):
            if !continues { resumed = offset }
            return resume(from: offset, metadata) && hasRoom(for: metadata)
        case .alreadyComplete:
            guard let part = store?.part else { return false }
            if !continues { resumed = part.length }
            // Bytes after the trusted bytes are truncated.
            return resume(from: part.length, part.metadata)
        case .leave: return true
        case .askFromStart, .fail: return false
        }
    }

    /// Prepares the partial file for the bytes that follow it, and keeps the file if an error occurs.
    private func resume(from offset: Int64, _ metadata: DownloadMetadata) -> Bool {
        put(keepsPart: true) { store throws(FileOperationError) in
            try store.checkPlace(for: metadata)
            try store.resume(from: offset, metadata)
        }
    }

    /// Performs a step, and returns `false` if an error occurs, which discards the partial file by default.
    ///
    /// - Parameter keepsPart: Whether an error keeps the partial file, because the step wrote none of its bytes.
    private func put(keepsPart: Bool = false, _ write: (DownloadStore) throws(FileOperationError) -> Void) -> Bool {
        guard let store else { return false }
        do throws(FileOperationError) {
            try write(store)
            return true
        } catch {
            if keepsPart { machine?.refuse(NetworkError(error)) } else { machine?.fail(writing: NetworkError(error)) }
            return false
        }
    }

    private func isAcceptable(_ head: ResponseHead, _ refuses: (ResponseHead) -> Bool) -> Bool {
        func accepts(_ head: ResponseHead) -> Bool { !refuses(head) && self.accepts(head) }
        guard machine?.asksForRest == true else { return accepts(head) }
        switch head.status {
        // The machine judges responses about ranges.
        case 412, 416: return true
        // Together with the bytes of the partial file, this response is the whole file.
        case 206: return accepts(head.asWhole(length: nil))
        default: return accepts(head)
        }
    }

    /// Checks early for a full disk, and keeps the partial file, which takes no more space than before.
    private func hasRoom(for metadata: DownloadMetadata) -> Bool {
        lastCheckpoint = clock.now
        guard let store, let total = metadata.total else { return true }
        let missing = total - store.length
        // The write of a small file fails just as early.
        guard missing > DownloadStore.worthMetadata else { return true }
        let free = store.freeBytes(wanted: missing)
        guard missing > free else { return true }
        machine?.refuse(
            NetworkError(
                code: .diskFull, phase: .saving,
                message: "The file needs \(missing) more bytes, but the volume has only \(free) bytes left. "
                    + "Free some space."))
        return false
    }

    /// Writes bytes of the body, and returns `false` if the request must be ended.
    package func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
        switch machine?.receive(count: bytes.count) {
        case .success(0)?, nil:
            keptBody += bytes.prefix(max(keptBytes - keptBody.count, 0))
            strayCount += bytes.count
            return strayCount <= Self.readLimit
        case .failure?: return false
        case .success?: break
        }
        return put { store throws(FileOperationError) in
            try store.write(bytes)
            guard clock.now >= lastCheckpoint.advanced(by: options.checkpointInterval) else { return }
            try store.checkpoint()
            lastCheckpoint = clock.now
        }
    }

    /// Processes the end of a request.
    ///
    /// - Parameter mayPublish: A closure that returns whether the complete file may be moved to its destination.
    package func end(_ error: NetworkError?, mayPublish: () -> Bool = { true }) -> DownloadConclusion {
        // A request that ends without a usable response is a failed attempt.
        isContinuation = false
        // A transfer that was canceled because enough bytes were received did not fail.
        switch machine?.end(strayCount > Self.readLimit ? nil : error) {
        case .finish(let length, let isLengthKnown)?: return finish(length, isLengthKnown, mayPublish)
        case .askForRest?:
            isContinuation = true
            return .again
        case .askFromStart?:
            recordLoss()
            discard()
            return .again
        case .left?: return head.map { .answered($0, keptBody) } ?? .failed(Self.misuse)
        case .keep(let error)?: return keep(error)
        case .discard(let error)?: return discard(error)
        case nil: return .failed(error ?? Self.misuse)
        }
    }

    private func finish(_ length: Int64, _ isLengthKnown: Bool, _ mayPublish: () -> Bool) -> DownloadConclusion {
        guard let store, let head else { return discard(Self.misuse) }
        do throws(FileOperationError) {
            if let expected = options.checksum,
                let sum = try store.takeChecksum(expected.algorithm, unless: cancellation), sum != expected.bytes
            {
                return discard(.wrongChecksum(expected.algorithm))
            }
            if !cancellation.isSet { try store.secure() }
        } catch {
            // The bytes themselves are unreliable.
            return discard(NetworkError(error))
        }
        // After this last check, the file appears at its destination even if the download is canceled.
        guard mayPublish(), !cancellation.isSet else { return keep(.cancelledDownload) }
        do throws(FileOperationError) {
            let url = try store.publish()
            self.store = nil
            let file = DownloadedFile(url: url, length: length, start: start, isLengthKnown: isLengthKnown)
            return .saved(file, head, store.published)
        } catch {
            // The bytes are valid, and the download can be resumed once the destination is available. If the disk is
            // full, the partial file is removed to free space.
            if store.published != nil { return discard(.uncertain(error)) }
            let isLost = [.noSpace, .changedMeanwhile].contains(error.code) || !store.hasPart
            return isLost ? discard(NetworkError(error)) : keep(NetworkError(error))
        }
    }

    private func keep(_ error: NetworkError) -> DownloadConclusion {
        // Do not wait for the disk, because the download may be started again immediately. Only a power failure can
        // lose bytes that were not flushed, and the metadata records how many.
        if cancellation.isSet { return .failed(error) }
        do throws(FileOperationError) {
            try store?.checkpoint()
        } catch {
            // Bytes that could not be flushed may be lost, whatever the system reports next.
            return discard(NetworkError(error))
        }
        return .failed(error)
    }

    private func discard(_ error: NetworkError) -> DownloadConclusion {
        discard()
        return .failed(error)
    }

    /// Records that the received bytes are discarded.
    private func recordLoss() {
        discarded = max(discarded, store?.length ?? 0)
    }

    /// Removes the partial file.
    package func discard() {
        store?.discard()
        store = nil
    }

    /// Releases the files, and keeps or removes the partial file, as the options and the response require.
    package func close() {
        // The partial file of a temporary download exists as long as this object.
        if store?.isKeptHere == true { return }
        store?.leave(isSynchronized: !cancellation.isSet)
        store = nil
    }

    private static let misuse = NetworkError(
        code: .invalidResponse, phase: .receiving, message: "The request ended without a response.")
}

/// The outcome of one request of a download.
package enum DownloadConclusion: Sendable {
    /// The complete file is at its destination, where it had this status, which is `nil` for a temporary file.
    case saved(DownloadedFile, ResponseHead, FileStatus?)
    /// Another request must be sent immediately, because the response does not continue the partial file or does not
    /// complete it.
    case again
    /// The response is not the file, but has these headers and these first bytes of its body.
    case answered(ResponseHead, [UInt8])
    /// The request failed, and the partial file remains for another request until the download is closed.
    case failed(NetworkError)
}

/// The amount of data from an earlier, incomplete download or from a failed attempt that this download reused or
/// discarded.
public struct DownloadStart: Sendable, Hashable {
    /// The number of bytes from an earlier, incomplete download or from a failed attempt that this download reused.
    public let resumedBytes: Int64
    /// The number of bytes from an earlier, incomplete download or from a failed attempt that this download discarded.
    public let discardedBytes: Int64
}
