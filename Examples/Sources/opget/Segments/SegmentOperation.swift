// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore
import OperationNetworking
import Synchronization

/// Why a file cannot be downloaded in segments, or not any more.
struct SegmentProblem: Error {
    let reason: String
}

/// The request for one segment: each attempt asks for what is missing of it, and its bytes go to their place in the file.
final class SegmentOperation: NetworkOperation<Int64, Int64>, @unchecked Sendable {
    // Sendable: what changes is in the writer.

    private let writer: SegmentWriter
    private let file: SegmentedFile
    private let index: Int

    init(
        _ request: NetworkRequest, over session: ExchangeSession, file: SegmentedFile, index: Int,
        wrote: @escaping @Sendable () -> Void
    ) {
        self.file = file
        self.index = index
        writer = SegmentWriter(file, index, wrote: wrote)
        super.init(request: request, urlSession: session) { written, _ in written }
        responseRules.contentTypes = .any
    }

    private var missing: Range<Int64> {
        let span = file.card.spans[index]
        return span.start + file.written(index)..<span.end
    }

    override func adapt(_ request: NetworkRequest) async throws -> NetworkRequest {
        // What the last attempt received may be on its way to the file.
        await writer.settled()
        let missing = missing
        var headers = request.headers
        headers["Accept-Encoding"] = "identity"
        headers["Range"] = "bytes=\(missing.lowerBound)-\(missing.upperBound - 1)"
        headers["If-Range"] = file.card.validator.field
        return try NetworkRequest(request.method, url: request.url, headers: headers, options: request.options)
    }

    override func makeCollector(for head: ResponseHead) throws -> ResponseCollector<Int64> {
        guard head.status == 206, let range = SegmentRange(head.headers) else {
            throw SegmentProblem(reason: "the server sends the file as a whole")
        }
        guard range.bytes == missing, range.total == file.card.total, file.card.validator.allows(head.headers),
            !head.headers.contains("Content-Encoding")
        else { throw SegmentProblem(reason: "the server sends something else than it was asked for") }
        return SegmentCollector(writer)
    }
}

/// Takes in the body of one segment.
final class SegmentCollector: ResponseCollector<Int64>, @unchecked Sendable {
    // Sendable: it adds nothing that changes.
    private let writer: SegmentWriter

    init(_ writer: SegmentWriter) {
        self.writer = writer
    }

    override func receive(_ bytes: UnsafeRawBufferPointer, flow: any NetworkTask) throws {
        try writer.take(bytes, flow)
    }

    override func finish() throws -> Int64 { try writer.finish() }
}

/// Writes what comes of a segment, on a queue of its own: the session's thread never waits for the disk, and a transfer that
/// is faster than the disk is held.
final class SegmentWriter: Sendable {
    private struct State {
        var bytes: [UInt8] = []
        /// The transfer that is held until there is room.
        var held: (any NetworkTask)?
        var isWorking = false
        var failure: FileFailure?
    }

    /// So many bytes may wait.
    private static let capacity = 256 << 10
    /// So many are worth waking the queue for.
    private static let portion = 64 << 10

    private let file: SegmentedFile
    private let index: Int
    private let wrote: @Sendable () -> Void
    private let queue: DispatchQueue
    private let state = Mutex(State())

    init(_ file: SegmentedFile, _ index: Int, wrote: @escaping @Sendable () -> Void) {
        self.file = file
        self.index = index
        self.wrote = wrote
        queue = DispatchQueue(label: "opget.segment.\(index)")
    }

    /// Called on the session's thread, never twice at once.
    func take(_ bytes: UnsafeRawBufferPointer, _ flow: any NetworkTask) throws(FileFailure) {
        // Only this thread adds bytes. The brake comes first, or the queue might loose it before it was set.
        let (failure, holds) = state.withLock { state in
            (state.failure, state.held == nil && state.bytes.count + bytes.count >= Self.capacity)
        }
        if let failure { throw failure }
        if holds { flow.hold() }
        let begins = state.withLock { state in
            state.bytes += bytes
            if holds { state.held = flow }
            // Whoever holds must be let go on by somebody, also where the queue took all that was there meanwhile.
            guard !state.isWorking, holds || state.bytes.count >= Self.portion else { return false }
            state.isWorking = true
            return true
        }
        if begins { queue.async { [self] in work() } }
    }

    private func work() {
        while let (bytes, held) = nextBatch() {
            held?.proceed()
            guard !bytes.isEmpty else { continue }
            do throws(FileFailure) {
                try write(bytes)
                wrote()
            } catch {
                // Whoever brings the next bytes learns of it.
                state.withLock { $0.failure = error }
            }
        }
    }

    private func write(_ bytes: [UInt8]) throws(FileFailure) {
        let result = bytes.withUnsafeBytes { buffer -> Result<Void, FileFailure> in
            Result { () throws(FileFailure) in try file.write(buffer, to: index) }
        }
        try result.get()
    }

    private func nextBatch() -> ([UInt8], (any NetworkTask)?)? {
        state.withLock { state in
            // After a failure nothing is written, but a transfer that is held must learn of it.
            if state.failure != nil { state.bytes = [] }
            guard !state.bytes.isEmpty || state.held != nil else {
                state.isWorking = false
                return nil
            }
            defer { (state.bytes, state.held) = ([], nil) }
            return (state.bytes, state.held)
        }
    }

    /// Writes what is left; on a thread that may block.
    func finish() throws(FileFailure) -> Int64 {
        queue.sync { work() }
        if let failure = state.withLock({ $0.failure }) { throw failure }
        return file.written(index)
    }

    /// Waits until all that came is written.
    func settled() async {
        await withCheckedContinuation { continuation in
            queue.async { [self] in
                work()
                continuation.resume()
            }
        }
    }
}
