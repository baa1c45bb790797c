// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// Sees the body of a request that is sent.
final class BodyTap: Sendable {
    private let body: RequestBody
    private let limit: Int
    /// What a producer gave.
    private let produced: Locked<BodyTally>

    init(_ body: RequestBody, limit: Int) {
        (self.body, self.limit) = (body, limit)
        produced = Locked(BodyTally(limit: limit))
    }

    /// The request, with a body whose bytes are seen.
    func tapped(_ request: NetworkRequest) -> NetworkRequest {
        guard case .stream(let makeProducer) = body.source else { return request }
        let stream = RequestBody.stream(length: body.length, canBeSentAgain: body.canBeSentAgain) { [self] in
            produced.withLock { $0 = BodyTally(limit: limit) }
            return TappedProducer(try makeProducer(), self)
        }
        // What the body said of itself is among the headers by now.
        let tapped = try? NetworkRequest(
            request.method, url: request.url, headers: request.headers, body: stream, options: request.options)
        return tapped ?? request
    }

    /// A producer gave these bytes.
    fileprivate func note(_ bytes: UnsafeRawBufferPointer) { produced.withLock { $0.take(bytes) } }

    /// What is written down of it; a file is read for that, so not on a thread of a session.
    func recorded(_ redactor: RecordingRedactor, _ headers: HeaderFields) -> RecordedBody {
        var tally = produced.withLock { $0 }
        switch body.source {
        case .none: return .none
        case .data(let data): tally.take(data)
        case .file(let region): Self.read(region, into: &tally)
        case .stream: break
        }
        let seen = tally.recorded
        guard let data = seen.data else { return seen }
        let clean = redactor.body(data, type: headers["Content-Type"], encoding: headers["Content-Encoding"])
        return clean.map { RecordedBody($0) } ?? RecordedBody(leftOut: data.count, checksum: tally.sum)
    }

    private static func read(_ region: FileRegion, into tally: inout BodyTally) {
        guard let file = try? FileHandle(forReadingFrom: region.url) else { return }
        defer { try? file.close() }
        try? file.seek(toOffset: UInt64(region.offset))
        var left = Int(region.length)
        while left > 0, let portion = try? file.read(upToCount: min(left, 1 << 16)), !portion.isEmpty {
            tally.take(portion)
            left -= portion.count
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
        if case .bytes(let count) = portion {
            tap.note(UnsafeRawBufferPointer(rebasing: buffer[..<min(max(count, 0), buffer.count)]))
        }
        return portion
    }
}
