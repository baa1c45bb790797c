// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The file of a ``FileRegion``, open for reading.
final class OpenRegion {
    private let region: FileRegion
    private let descriptor: Int32

    init(_ region: FileRegion) throws(NetworkError) {
        self.region = region
        descriptor = open(region.url.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { throw Self.unreadable(region, errno) }
        try check()
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// Reads from a place in the region: at least one byte.
    func read(at offset: Int64, into target: UnsafeMutableRawBufferPointer) throws(NetworkError) -> Int {
        while true {
            let count = pread(descriptor, target.baseAddress, target.count, off_t(region.offset + offset))
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Self.unreadable(region, errno) }
            guard count > 0 else { throw region.changed }
            // The last look comes after the last byte.
            if offset + Int64(count) == region.length { try check() }
            return count
        }
    }

    /// Whether it is still the file of which the region was made.
    private func check() throws(NetworkError) {
        guard let status = FileRegionStatus(descriptor: descriptor), region.isPart(of: status) else {
            throw region.changed
        }
    }

    private static func unreadable(_ region: FileRegion, _ number: Int32) -> NetworkError {
        if let error = DescriptorShortage.error(number, opening: region.url.path, phase: .sending) { return error }
        return NetworkError(
            code: .bodyUnreadable, phase: .sending, message: "\(region.url.path) cannot be read. Check the file.",
            underlying: .init(domain: "errno", number: Int(number), text: String(cString: strerror(number))))
    }
}
