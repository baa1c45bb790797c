// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking

/// A collector that passes the body of one segment to a writer.
final class SegmentCollector: ResponseCollector<Int64>, @unchecked Sendable {
    // Sendable: the class adds no mutable state.
    private let writer: SegmentWriter
    private let turn: Int

    init(_ writer: SegmentWriter) {
        self.writer = writer
        turn = writer.begin()
    }

    override func receive(_ bytes: UnsafeRawBufferPointer, flow: any NetworkTask) throws {
        try writer.take(bytes, flow, of: turn)
    }

    override func finish() throws -> Int64 { try writer.finish() }
}
