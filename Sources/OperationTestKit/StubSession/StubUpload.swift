// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

/// Reads the body of a request into memory; used on the queue of its session alone.
final class StubUpload: @unchecked Sendable {
    // Sendable: only the serial queue of the session touches it.

    private let body: RequestBody
    private var producer: (any BodyProducer)?
    private(set) var bytes = Data()

    init(_ body: RequestBody) {
        self.body = body
    }

    /// Reads on; false if the producer has nothing yet and will use the waker.
    func read(_ waker: BodyWaker, tellingCount tell: (Int64) -> Void) throws -> Bool {
        switch body.source {
        case .none: return true
        case .data(let data): bytes = data
        case .file(let region):
            let file = try FileHandle(forReadingFrom: region.url)
            defer { try? file.close() }
            try file.seek(toOffset: UInt64(region.offset))
            bytes = try file.read(upToCount: Int(region.length)) ?? Data()
        case .stream(let makeProducer):
            let producer = try self.producer ?? makeProducer()
            self.producer = producer
            return try read(from: producer, waker, tell)
        }
        tell(Int64(bytes.count))
        return true
    }

    private func read(from producer: any BodyProducer, _ waker: BodyWaker, _ tell: (Int64) -> Void) throws -> Bool {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            switch try buffer.withUnsafeMutableBytes({ try producer.produce(into: $0, waker: waker) }) {
            case .bytes(let count):
                bytes += buffer.prefix(count)
                tell(Int64(bytes.count))
            case .notYet: return false
            case .end: return true
            }
        }
    }
}
