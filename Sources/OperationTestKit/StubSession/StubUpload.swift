// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

/// Reads the body of a request into memory; used on the queue of its session alone.
final class StubUpload: @unchecked Sendable {
    // Sendable: only the serial queue of the session touches it.

    struct Portion {
        /// How many bytes were read by now; nil if none came with this portion.
        var count: Int64?
        let isLast: Bool
    }

    private let body: RequestBody
    private var producer: (any BodyProducer)?
    private(set) var bytes = Data()

    init(_ body: RequestBody) {
        self.body = body
    }

    /// Reads the next portion; nil if the producer has nothing yet and will use the waker.
    func read(_ waker: BodyWaker) throws -> Portion? {
        switch body.source {
        case .none: return Portion(isLast: true)
        case .data(let data): bytes = data
        case .file(let region):
            let file = try FileHandle(forReadingFrom: region.url)
            defer { try? file.close() }
            try file.seek(toOffset: UInt64(region.offset))
            bytes = try file.read(upToCount: Int(region.length)) ?? Data()
        case .stream(let makeProducer):
            let producer = try self.producer ?? makeProducer()
            self.producer = producer
            return try read(from: producer, waker)
        }
        return Portion(count: Int64(bytes.count), isLast: true)
    }

    private func read(from producer: any BodyProducer, _ waker: BodyWaker) throws -> Portion? {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        switch try buffer.withUnsafeMutableBytes({ try producer.produce(into: $0, waker: waker) }) {
        case .bytes(let count):
            bytes += buffer.prefix(count)
            return Portion(count: Int64(bytes.count), isLast: false)
        case .notYet: return nil
        case .end: return Portion(isLast: true)
        }
    }
}
