// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The bytes of a body as they come: kept up to a limit, counted and summed up beyond it.
struct BodyTally: Sendable {
    private let limit: Int
    private var data = Data()
    private var count = 0
    private var checksum = SHA256()

    init(limit: Int) { self.limit = limit }

    mutating func take(_ bytes: UnsafeRawBufferPointer) {
        count += bytes.count
        checksum.update(bytes)
        if count <= limit {
            data.append(contentsOf: bytes)
        } else if !data.isEmpty {
            data = Data()
        }
    }

    mutating func take(_ bytes: Data) {
        bytes.withUnsafeBytes { take($0) }
    }

    /// The bytes, or how many there were and what they come to.
    var recorded: RecordedBody {
        guard count > limit else { return RecordedBody(data) }
        var checksum = checksum
        return RecordedBody(leftOut: count, checksum: checksum.finish().hexadecimal, because: .tooLong)
    }
}
