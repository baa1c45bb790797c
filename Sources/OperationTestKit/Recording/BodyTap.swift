// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// Sees the body of a request that is sent.
final class BodyTap: Sendable {
    /// What a producer gave.
    private struct Produced {
        var tally: BodyTally
        var isAtEnd = false
    }

    private let body: RequestBody
    private let limit: Int
    private let produced: Locked<Produced>
    /// The file, opened before anybody can delete it; nil if it cannot be opened, or there is none.
    private let file: BodyFile?

    init(_ body: RequestBody, limit: Int) {
        (self.body, self.limit) = (body, limit)
        produced = Locked(Produced(tally: BodyTally(limit: limit)))
        if case .file(let region) = body.source { file = BodyFile(region) } else { file = nil }
    }

    /// The request, with a body whose bytes are seen.
    func tapped(_ request: NetworkRequest) -> NetworkRequest {
        guard case .stream(let makeProducer) = body.source else { return request }
        let stream = RequestBody.stream(length: body.length, canBeSentAgain: body.canBeSentAgain) { [self] in
            produced.withLock { $0 = Produced(tally: BodyTally(limit: limit)) }
            return TappedProducer(try makeProducer(), self)
        }
        // What the body said of itself is among the headers by now.
        let tapped = try? NetworkRequest(
            request.method, url: request.url, headers: request.headers, body: stream, options: request.options)
        return tapped ?? request
    }

    /// A producer gave these bytes.
    fileprivate func note(_ bytes: UnsafeRawBufferPointer) { produced.withLock { $0.tally.take(bytes) } }

    /// A producer has no more.
    fileprivate func noteEnd() { produced.withLock { $0.isAtEnd = true } }

    /// What was sent, with its secrets; a file is read for that, so not on a thread of a session.
    func recorded() -> RecordedBody {
        switch body.source {
        case .none: return .none
        case .data(let data):
            var tally = BodyTally(limit: limit)
            tally.take(data)
            return tally.recorded
        case .file(let region):
            let bytes = file?.tally(limit: limit)
            return bytes?.recorded ?? RecordedBody(leftOut: Int(clamping: region.length), because: .unreadable)
        case .stream:
            let produced = produced.withLock { $0 }
            let seen = produced.tally.recorded
            // One whose length is known need not be asked whether that was all.
            if produced.isAtEnd || body.length == Int64(seen.count) { return seen }
            return seen.data.map { RecordedBody(brokenOff: $0) }
                ?? RecordedBody(leftOut: seen.count, because: .brokenOff)
        }
    }
}

/// Gives what another producer gives.
private final class TappedProducer: BodyProducer {
    private let producer: any BodyProducer
    private let tap: BodyTap

    init(_ producer: any BodyProducer, _ tap: BodyTap) {
        (self.producer, self.tap) = (producer, tap)
    }

    func produce(into buffer: UnsafeMutableRawBufferPointer, waker: BodyWaker) throws -> BodyPortion {
        let portion = try producer.produce(into: buffer, waker: waker)
        switch portion {
        case .bytes(let count): tap.note(UnsafeRawBufferPointer(rebasing: buffer[..<min(max(count, 0), buffer.count)]))
        case .end: tap.noteEnd()
        case .notYet: break
        }
        return portion
    }
}
