// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

/// A file that is sent, held open: it can be read when the exchange is over, also if its name is gone by then.
final class BodyFile: Sendable {
    private static let portionSize = 1 << 16

    private let region: FileRegion
    private let descriptor: Int32
    /// What the file was like when it was opened.
    private let status: FileRegionStatus

    /// Nil if it cannot be opened.
    init?(_ region: FileRegion) {
        let descriptor = open(region.url.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { return nil }
        guard let status = FileRegionStatus(descriptor: descriptor) else {
            close(descriptor)
            return nil
        }
        (self.region, self.descriptor, self.status) = (region, descriptor, status)
    }

    deinit { close(descriptor) }

    /// All bytes of the region; nil if they cannot be read, or were changed meanwhile.
    func tally(limit: Int) -> BodyTally? {
        var tally = BodyTally(limit: limit)
        var offset: Int64 = 0
        while offset < region.length {
            let wanted = Int(min(region.length - offset, Int64(Self.portionSize)))
            let portion = [UInt8](unsafeUninitializedCapacity: wanted) { buffer, count in
                count = max(pread(descriptor, buffer.baseAddress, wanted, off_t(region.offset + offset)), 0)
            }
            guard !portion.isEmpty else { return nil }
            portion.withUnsafeBytes { tally.take($0) }
            offset += Int64(portion.count)
        }
        return FileRegionStatus(descriptor: descriptor) == status ? tally : nil
    }
}
