// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The file side of one download, step by step: the machine's decisions, carried out on the disk.
///
/// Not Sendable on purpose: all calls come on the queue of its download, and block for as long as the disk does.
package final class DownloadWork {
    /// How much is kept of a response that is no file.
    private static let keptBytes = 64 << 10

    private let destination: DownloadDestination
    private let options: DownloadOptions
    private let files: FileSystem
    private let clock: any OperationClock
    /// Whether a response with that head is the file; if not, nothing of it comes to the destination.
    private let accepts: @Sendable (ResponseHead) -> Bool
    private var source = ""
    private var machine: DownloadMachine?
    private var store: DownloadStore?
    private var head: ResponseHead?
    private var keptBody: [UInt8] = []
    private var lastCheckpoint: OperationInstant
    /// How many bytes were there when the present response began.
    private var resumed: Int64 = 0

    package init(
        to destination: DownloadDestination, options: DownloadOptions = DownloadOptions(),
        files: FileSystem = FileSystem(), clock: any OperationClock = .system,
        accepts: @escaping @Sendable (ResponseHead) -> Bool = { _ in true }
    ) {
        self.accepts = accepts
        self.destination = destination
        self.options = options
        self.files = files
        self.clock = clock
        lastCheckpoint = clock.now
    }

    /// How much is there.
    package var progress: DownloadProgress {
        DownloadProgress(received: store?.length ?? 0, total: store?.part?.card.total)
    }

    /// Makes ready for a request, and returns it as it is to be sent.
    package func prepare(_ request: NetworkRequest) throws(NetworkError) -> NetworkRequest {
        head = nil
        keptBody = []
        let resumes = request.method == "GET" && !request.headers.contains("Range")
        let source = DownloadNames.hash(options.resumeKey.map { "key \($0)" } ?? "url \(request.url.absoluteString)")
        if machine == nil || source != self.source {
            let limits = DownloadLimits(expected: options.expectedLength, maximum: options.maximumLength)
            machine = DownloadMachine(source: source, limits: limits, resumes: resumes)
            self.source = source
        }
        do throws(FileOperationError) {
            if store == nil {
                store = try DownloadStore(destination, source: source, options: options, files: files)
            }
        } catch {
            throw NetworkError(error)
        }
        var headers = request.headers
        if !headers.contains("Accept-Encoding") { headers.add("Accept-Encoding", "identity") }
        if case .rest(let offset, let validator)? = machine?.ask(havingPart: store?.part) {
            headers["Range"] = "bytes=\(offset)-"
            headers["If-Range"] = validator.field
        }
        return try NetworkRequest(
            request.method, url: request.url, headers: headers, body: request.body, options: request.options)
    }

    /// Takes the head of a response; false if the request is to be ended.
    package func receive(_ head: ResponseHead) -> Bool {
        self.head = head
        if !isAcceptable(head) {
            machine?.leaveResponse()
            return true
        }
        guard let action = machine?.receive(head) else { return false }
        do throws(FileOperationError) {
            switch action {
            case .begin(var card):
                card.fileName = DownloadFileName.name(for: head)
                if case .folder = destination.place { try store?.check(card.fileName ?? "") }
                resumed = 0
                try store?.begin(card)
                return hasRoom(for: card)
            case .goOn(let offset, let card):
                resumed = offset
                try store?.goOn(from: offset, card)
                return hasRoom(for: card)
            case .alreadyComplete:
                resumed = store?.length ?? 0
                return true
            case .leave: return true
            case .askAnew, .fail: return false
            }
        } catch {
            machine?.fail(writing: NetworkError(error))
            return false
        }
    }

    private func isAcceptable(_ head: ResponseHead) -> Bool {
        guard machine?.asksForRest == true else { return accepts(head) }
        switch head.status {
        // What is said of ranges is for the machine to judge.
        case 412, 416: return true
        // With what is there already it is the whole.
        case 206: return accepts(head.asWhole(length: nil))
        default: return accepts(head)
        }
    }

    private func hasRoom(for card: DownloadCard) -> Bool {
        lastCheckpoint = clock.now
        guard let store, let total = card.total else { return true }
        let (missing, free) = (total - store.length, store.freeBytes())
        guard missing > free else { return true }
        machine?.fail(
            writing: NetworkError(
                code: .diskFull, phase: .saving,
                message: "The file needs \(missing) bytes more, and the volume has room for \(free). Free some."))
        return false
    }

    /// Takes bytes of the body; false if the request is to be ended.
    package func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
        switch machine?.receive(count: bytes.count) {
        case .success(0)?, nil:
            keptBody += bytes.prefix(max(Self.keptBytes - keptBody.count, 0))
            return true
        case .failure?: return false
        case .success?: break
        }
        do throws(FileOperationError) {
            try store?.write(bytes)
            if clock.now >= lastCheckpoint.advanced(by: options.checkpointInterval) {
                try store?.checkpoint()
                lastCheckpoint = clock.now
            }
            return true
        } catch {
            machine?.fail(writing: NetworkError(error))
            return false
        }
    }

    /// Takes the end of a request.
    package func end(_ error: NetworkError?) -> DownloadConclusion {
        switch machine?.end(error) {
        case .finish(let length, let isLengthKnown)?:
            do throws(NetworkError) {
                return try finish(length: length, isLengthKnown: isLengthKnown)
            } catch {
                return discard(error)
            }
        case .askOn?: return .again
        case .askAnew?:
            forgetStore()
            return .again
        case .left?: return head.map { .answered($0, keptBody) } ?? .failed(Self.misuse)
        case .keep(let error)?: return keep(error)
        case .discard(let error)?: return discard(error)
        case nil: return .failed(error ?? Self.misuse)
        }
    }

    private func finish(length: Int64, isLengthKnown: Bool) throws(NetworkError) -> DownloadConclusion {
        guard let store, let head else { throw Self.misuse }
        let expected = options.checksum
        let result = Result { () throws(FileOperationError) -> URL? in
            if let expected, try store.takeChecksum(expected.algorithm) != expected.bytes { return nil }
            return try store.publish(as: store.part?.card.fileName)
        }
        switch result {
        case .success(let url?):
            self.store = nil
            let file = DownloadedFile(url: url, length: length, resumedBytes: resumed, isLengthKnown: isLengthKnown)
            return .saved(file, head)
        case .success(nil): throw .wrongChecksum(expected?.algorithm ?? .sha256)
        case .failure(let error): throw NetworkError(error)
        }
    }

    private func keep(_ error: NetworkError) -> DownloadConclusion {
        do throws(FileOperationError) {
            try store?.checkpoint()
        } catch {
            // What was not brought to the disk may be lost, whatever the system says next.
            return discard(NetworkError(error))
        }
        return .failed(error)
    }

    private func discard(_ error: NetworkError) -> DownloadConclusion {
        forgetStore()
        return .failed(error)
    }

    private func forgetStore() {
        store?.discard()
        store = nil
    }

    /// Lets go of everything: what can be gone on with stays, if it is to, and the rest is removed.
    package func close() {
        store?.leave()
        store = nil
    }

    private static let misuse = NetworkError(
        code: .invalidResponse, phase: .receiving, message: "The request ended without a response.")
}
