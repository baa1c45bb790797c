// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The file side of one download, step by step: the machine's decisions, carried out on the disk.
///
/// Not Sendable on purpose: all calls come on the queue of its download, and block for as long as the disk does.
package final class DownloadWork {
    /// How much is kept of a response that is no file, if nobody says how much.
    package static let usualKeptBytes = 64 << 10
    /// How much of such a response is read at all.
    private static let patience = 1 << 20

    private let destination: DownloadDestination
    private let options: DownloadOptions
    private let files: FileSystem
    private let clock: any OperationClock
    private let cancellation: DownloadCancellation
    /// Whether a response with that head is the file; if not, nothing of it comes to the destination.
    private let accepts: @Sendable (ResponseHead) -> Bool
    private let keptBytes: Int
    private var source = ""
    private var machine: DownloadMachine?
    private var store: DownloadStore?
    private var head: ResponseHead?
    private var keptBody: [UInt8] = []
    /// How much came of it.
    private var strayCount = 0
    private var lastCheckpoint: OperationInstant
    /// How many bytes were there before the present response, and those that it goes on with.
    private var resumed: Int64 = 0
    /// How many bytes were there before, and had to be thrown away.
    private var discarded: Int64 = 0
    /// Whether the present response goes on with the one before, of which the server had not sent all.
    private var isContinuation = false

    package init(
        to destination: DownloadDestination, options: DownloadOptions = DownloadOptions(),
        files: FileSystem = FileSystem(), clock: any OperationClock = .system,
        cancellation: DownloadCancellation = DownloadCancellation(), keptBytes: Int = DownloadWork.usualKeptBytes,
        accepts: @escaping @Sendable (ResponseHead) -> Bool = { _ in true }
    ) {
        self.accepts = accepts
        self.keptBytes = min(max(keptBytes, 0), Self.patience)
        self.destination = destination
        self.options = options
        self.files = files
        self.clock = clock
        self.cancellation = cancellation
        lastCheckpoint = clock.now
    }

    /// The head of the response, as it would be of the whole, if it is that of the file.
    package var presentHead: ResponseHead? { machine?.isWriting == true ? head?.asWhole(length: nil) : nil }

    /// Whether the present response is of no use, so that another request is made.
    package var asksAnew: Bool { machine?.isAskingAnew == true }

    /// What became of what was there before.
    package var start: DownloadStart { DownloadStart(resumedBytes: resumed, discardedBytes: discarded) }

    /// How much is there.
    package var progress: DownloadProgress {
        DownloadProgress(received: store?.length ?? 0, total: store?.part?.card.total)
    }

    /// Makes ready for a request, and returns it as it is to be sent.
    package func prepare(_ request: NetworkRequest) throws(NetworkError) -> NetworkRequest {
        head = nil
        keptBody = []
        strayCount = 0
        let resumes = request.method == "GET" && !request.headers.contains("Range")
        let source = DownloadNames.source(of: request, options)
        if machine == nil || source != self.source {
            let limits = DownloadLimits(expected: options.expectedLength, maximum: options.maximumLength)
            machine = DownloadMachine(
                source: source, limits: limits, resumes: resumes, takesEveryStatus: destination.isTemporary)
            self.source = source
        }
        do throws(FileOperationError) {
            if store == nil { store = try makeStore(resumes) }
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

    private func makeStore(_ resumes: Bool) throws(FileOperationError) -> DownloadStore {
        do throws(FileOperationError) {
            return try DownloadStore(destination, source: source, options: options, files: files)
        } catch {
            // Another request of the same URL, with another body maybe, is something else, and its file may get another
            // name. Nobody ever goes on with what it leaves, so its part need not be found again.
            guard !resumes, error.code == .busy, destination.isFolder else { throw error }
            let name = UUID().uuidString
            return try DownloadStore(destination, source: name, options: options, files: files)
        }
    }

    /// Takes the head of a response; false if the request is to be ended.
    ///
    /// - Parameter refuses: Says that nothing of it is to come to its place, whatever else it is.
    package func receive(_ head: ResponseHead, refuses: (ResponseHead) -> Bool = { _ in false }) -> Bool {
        self.head = head
        if !isAcceptable(head, refuses) {
            machine?.leaveResponse()
            return true
        }
        guard let action = machine?.receive(head) else { return false }
        let continues = exchange(&isContinuation, with: false)
        switch action {
        case .begin(var card):
            card.fileName = DownloadFileName.name(for: head)
            resumed = 0
            guard hasPlace(for: card) else { return false }
            noteLoss()
            return put { store throws(FileOperationError) in try store.begin(card) } && hasRoom(for: card)
        case .goOn(let offset, let card):
            if !continues { resumed = offset }
            return hasPlace(for: card) && put { store throws(FileOperationError) in try store.goOn(from: offset, card) }
                && hasRoom(for: card)
        case .alreadyComplete:
            guard let part = store?.part else { return false }
            if !continues { resumed = part.length }
            // What may lie behind the bytes that are known to be there is cut off.
            return hasPlace(for: part.card)
                && put { store throws(FileOperationError) in try store.goOn(from: part.length, part.card) }
        case .leave: return true
        case .askAnew, .fail: return false
        }
    }

    /// Finds out early, and with what is there kept, what would be found out in the end.
    private func hasPlace(for card: DownloadMetadata) -> Bool {
        do throws(FileOperationError) {
            try store?.checkPlace(for: card)
            return true
        } catch {
            machine?.refuse(NetworkError(error))
            return false
        }
    }

    private func put(_ write: (DownloadStore) throws(FileOperationError) -> Void) -> Bool {
        guard let store else { return false }
        do throws(FileOperationError) {
            try write(store)
            return true
        } catch {
            machine?.fail(writing: NetworkError(error))
            return false
        }
    }

    private func isAcceptable(_ head: ResponseHead, _ refuses: (ResponseHead) -> Bool) -> Bool {
        func accepts(_ head: ResponseHead) -> Bool { !refuses(head) && self.accepts(head) }
        guard machine?.asksForRest == true else { return accepts(head) }
        switch head.status {
        // What is said of ranges is for the machine to judge.
        case 412, 416: return true
        // With what is there already it is the whole.
        case 206: return accepts(head.asWhole(length: nil))
        default: return accepts(head)
        }
    }

    private func hasRoom(for card: DownloadMetadata) -> Bool {
        lastCheckpoint = clock.now
        guard let store, let total = card.total else { return true }
        let missing = total - store.length
        let free = store.freeBytes(wanted: missing)
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
            keptBody += bytes.prefix(max(keptBytes - keptBody.count, 0))
            strayCount += bytes.count
            return strayCount <= Self.patience
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

    /// Takes the end of a request.
    package func end(_ error: NetworkError?) -> DownloadConclusion {
        // What was cut off because enough of it had come ended well.
        switch machine?.end(strayCount > Self.patience ? nil : error) {
        case .finish(let length, let isLengthKnown)?: return finish(length: length, isLengthKnown: isLengthKnown)
        case .askOn?:
            isContinuation = true
            return .again
        case .askAnew?:
            noteLoss()
            forgetStore()
            return .again
        case .left?: return head.map { .answered($0, keptBody) } ?? .failed(Self.misuse)
        case .keep(let error)?: return keep(error)
        case .discard(let error)?: return discard(error)
        case nil: return .failed(error ?? Self.misuse)
        }
    }

    private func finish(length: Int64, isLengthKnown: Bool) -> DownloadConclusion {
        guard let store, let head else { return discard(Self.misuse) }
        do throws(FileOperationError) {
            if let expected = options.checksum,
                let sum = try store.takeChecksum(expected.algorithm, unless: cancellation), sum != expected.bytes
            {
                return discard(.wrongChecksum(expected.algorithm))
            }
            if !cancellation.isSet { try store.secure() }
        } catch {
            // It is the bytes themselves that cannot be relied on.
            return discard(NetworkError(error))
        }
        // The last look: who cancels from now on finds the file in its place.
        if cancellation.isSet { return keep(.cancelledDownload) }
        do throws(FileOperationError) {
            let url = try store.publish()
            self.store = nil
            let file = DownloadedFile(url: url, length: length, start: start, isLengthKnown: isLengthKnown)
            return .saved(file, head, store.published)
        } catch {
            // The bytes are good, and may be gone on with when there is a place for them; but a full disk is made free.
            if store.published != nil { return discard(.uncertain(error)) }
            let isLost = [.noSpace, .changedMeanwhile].contains(error.code) || !store.hasPart
            return isLost ? discard(NetworkError(error)) : keep(NetworkError(error))
        }
    }

    private func keep(_ error: NetworkError) -> DownloadConclusion {
        // Whoever cancels may want it again at once, and is not to wait for a disk: only a power cut can take away what was
        // written and not synchronized, and then it is known how much of it.
        if cancellation.isSet { return .failed(error) }
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

    /// What is there is of no use any more.
    private func noteLoss() {
        discarded = max(discarded, store?.length ?? 0)
    }

    private func forgetStore() {
        store?.discard()
        store = nil
    }

    /// Lets go of everything: what can be gone on with stays, if it is to, and the rest is removed.
    package func close() {
        // Of a temporary file it stays for as long as this object, and goes with it.
        if store?.isKeptHere == true { return }
        store?.leave(isSynchronized: !cancellation.isSet)
        store = nil
    }

    /// Removes what was received.
    package func discard() { forgetStore() }

    private static let misuse = NetworkError(
        code: .invalidResponse, phase: .receiving, message: "The request ended without a response.")
}

/// What came of one request of a download.
package enum DownloadConclusion: Sendable {
    /// The file is there, whole, and had this status when it came to its destination; nil for a temporary file.
    case saved(DownloadedFile, ResponseHead, FileStatus?)
    /// Another request must be made, at once: what the server sent does not go on with what is there, or not to its end.
    case again
    /// It was no file: the response and the first bytes of its body.
    case answered(ResponseHead, [UInt8])
    /// It failed. What is there stays until the download is closed, for another request to go on with.
    case failed(NetworkError)
}

/// Whether a download was cancelled: set by whoever cancels it, and looked at by its queue where it works for long, and
/// once more just before the file takes its place.
package final class DownloadCancellation: Sendable {
    private let state = Locked(false)

    package init() {}

    package var isSet: Bool { state.withLock { $0 } }

    package func set() { state.withLock { $0 = true } }
}

/// Whose turn it is with the files of a download: one run after another, in the order in which they came.
struct DownloadTurn: Sendable {
    private var isTaken = false
    private var waiting: [@Sendable () -> Void] = []

    /// Takes the turn; false if another run has it, which passes it on to `begin`.
    mutating func take(_ begin: @escaping @Sendable () -> Void) -> Bool {
        guard isTaken else {
            isTaken = true
            return true
        }
        waiting.append(begin)
        return false
    }

    /// The turn is over; returns what begins the next, outside of the lock.
    mutating func pass() -> (@Sendable () -> Void)? {
        if waiting.isEmpty {
            isTaken = false
            return nil
        }
        return waiting.removeFirst()
    }
}

/// What a download found of an earlier one, and what became of that.
public struct DownloadStart: Sendable, Hashable {
    /// How many bytes were there before, and are gone on with.
    public let resumedBytes: Int64
    /// How many bytes were there before and were thrown away: the file on the server has changed, or the server cannot go on
    /// with them.
    public let discardedBytes: Int64
}
