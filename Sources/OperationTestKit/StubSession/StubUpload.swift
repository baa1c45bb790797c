// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// Reads the body of a request into memory; used on the queue of its session alone.
final class StubUpload: @unchecked Sendable {
    // Sendable: only the serial queue of the session touches it.

    struct Portion {
        /// How many bytes were read by now; nil if none came with this portion.
        var count: Int64?
        let isLast: Bool
    }

    private static let portionSize = 1 << 16

    private let body: RequestBody
    private let limit: Int
    private var producer: (any BodyProducer)?
    private var checksum = SHA256()
    /// The bytes: the first of them, if there are more than are kept.
    private(set) var bytes = Data()
    /// How many there were so far.
    private(set) var count = 0

    /// - Parameter limit: How many bytes are kept in memory; all if nil, and then there is no checksum.
    init(_ body: RequestBody, keeping limit: Int?) {
        self.body = body
        self.limit = limit ?? .max
    }

    /// The SHA-256 of all bytes; empty if they are all kept.
    ///
    /// To be asked once, at the end.
    func hash() -> String { limit == .max ? "" : checksum.finish().hexadecimal }

    /// Reads the next portion; nil if the producer has nothing yet and will use the waker.
    func read(_ waker: BodyWaker) throws -> Portion? {
        switch body.source {
        case .none: return Portion(isLast: true)
        case .data(let data): take(data)
        case .file(let region): try read(region)
        case .stream(let makeProducer):
            let producer = try self.producer ?? makeProducer()
            self.producer = producer
            return try read(from: producer, waker)
        }
        return Portion(count: Int64(count), isLast: true)
    }

    private func read(_ region: FileRegion) throws {
        let file = try FileHandle(forReadingFrom: region.url)
        defer { try? file.close() }
        try file.seek(toOffset: UInt64(region.offset))
        while count < region.length {
            let wanted = min(Int(region.length) - count, Self.portionSize)
            guard let portion = try file.read(upToCount: wanted), !portion.isEmpty else { return }
            take(portion)
        }
    }

    private func read(from producer: any BodyProducer, _ waker: BodyWaker) throws -> Portion? {
        var buffer = [UInt8](repeating: 0, count: Self.portionSize)
        switch try buffer.withUnsafeMutableBytes({ try producer.produce(into: $0, waker: waker) }) {
        case .bytes(let count):
            // A test's own producer may say anything.
            take(Data(buffer.prefix(max(count, 0))))
            return Portion(count: Int64(self.count), isLast: false)
        case .notYet: return nil
        case .end: return Portion(isLast: true)
        }
    }

    private func take(_ data: Data) {
        count += data.count
        if bytes.count < limit { bytes += data.prefix(limit - bytes.count) }
        if limit != .max { data.withUnsafeBytes { checksum.update($0) } }
    }
}

extension [UInt8] {
    /// The bytes as text, two digits each.
    var hexadecimal: String { map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
}
