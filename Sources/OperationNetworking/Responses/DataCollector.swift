// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Keeps a body in memory, up to a bound.
final class DataCollector: ResponseCollector<Data>, @unchecked Sendable {
    // Sendable: as its superclass.

    private let limit: Int
    private var data = Data()

    init(limit: Int, expected: Int64?) {
        self.limit = limit
        super.init()
        // Nobody gets memory by announcing that he will send much.
        if let expected, expected > 0 { data.reserveCapacity(max(Int(min(expected, Int64(limit), 1 << 20)), 0)) }
    }

    override func receive(_ bytes: UnsafeRawBufferPointer, flow: any NetworkTask) throws {
        guard bytes.count <= limit - data.count else {
            throw NetworkError(
                code: .bodyTooLarge, phase: .receiving,
                message: "The body has more than the \(limit) bytes that may be kept in memory. "
                    + "Download it to a file, or raise maximumBytesInMemory.")
        }
        data.append(contentsOf: bytes)
    }

    override func prefix(_ count: Int) -> Data? { data.isEmpty ? nil : Data(data.prefix(max(count, 0))) }

    override func finish() -> Data { data }
}

/// Keeps the body of an answer that is an error, or its beginning, and has it cut off if it goes on for long.
///
/// It may be looked at while it is filled: a rest that takes too long is not waited for.
final class ErrorBodyCollector: AnyResponseCollector, @unchecked Sendable {
    // Sendable: what changes is behind its lock.

    /// How many bytes are read before the transfer is cut off.
    static let patience = 1 << 20

    private let limit: Int
    private let taken = Locked((count: 0, body: Data()))

    init(limit: Int) {
        self.limit = max(limit, 0)
        super.init()
    }

    var body: Data { taken.withLock { $0.body } }

    override func prefix(_ count: Int) -> Data? {
        let body = body
        return body.isEmpty ? nil : Data(body.prefix(max(count, 0)))
    }

    override func receive(_ bytes: UnsafeRawBufferPointer, flow: any NetworkTask) throws {
        let count = taken.withLock { taken in
            if taken.body.count < limit { taken.body.append(contentsOf: bytes.prefix(limit - taken.body.count)) }
            taken.count += bytes.count
            return taken.count
        }
        if count > Self.patience { throw EnoughOfBody() }
    }
}

/// No more bytes are needed: the transfer is to be cut off and to count as complete.
struct EnoughOfBody: Error {}
