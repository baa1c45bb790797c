// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Reads a body of which every byte was looked at before the first is handed out.
///
/// Not Sendable on purpose: it stays on the queue of its cache.
final class CacheBodyReader {
    private let folder: CacheFolder
    private let file: OpenFile
    private let length: Int64
    private var offset: Int64 = 0
    /// The whole body, where it is no longer than a chunk: then it is read once only.
    private var whole: Data?

    /// Opens a body; nil if it is not what its card says.
    init?(_ body: CacheBody, in folder: CacheFolder) {
        guard let (file, status) = folder.open(body.name), status.size == body.length else { return nil }
        self.folder = folder
        self.file = file
        length = body.length
        var checksum = CRC32()
        while offset < length {
            guard let chunk = readChunk() else { return nil }
            chunk.withUnsafeBytes { checksum.update($0) }
            if offset == length, Int64(chunk.count) == length { whole = chunk }
        }
        guard Hexadecimal.lower(checksum.finish()) == body.checksum else { return nil }
        offset = 0
    }

    /// The next bytes; nil at the end, or where the file can no longer be read.
    func next() -> Data? {
        guard offset < length else { return nil }
        if let whole {
            offset = length
            return whole
        }
        return readChunk()
    }

    /// Whether all bytes were handed out.
    var isAtEnd: Bool { offset == length }

    private func readChunk() -> Data? {
        let count = Int(min(Int64(CacheFolder.chunkSize), length - offset))
        var data = Data(count: count)
        var filled = 0
        while filled < count {
            let result = data.withUnsafeMutableBytes { buffer in
                folder.files.read(
                    file, into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]), at: offset + Int64(filled))
            }
            guard let read = try? result.get(), read > 0 else { return nil }
            filled += read
        }
        offset += Int64(count)
        return data
    }
}
