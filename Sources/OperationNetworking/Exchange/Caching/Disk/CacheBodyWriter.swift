// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Writes a body aside, as it comes.
///
/// Not Sendable on purpose: it stays on the queue of its cache.
final class CacheBodyWriter {
    private let folder: CacheFolder
    private let part: String
    private let file: OpenFile
    private var checksum = CRC32()
    private(set) var length: Int64 = 0
    private var isDone = false

    init?(in folder: CacheFolder) {
        part = folder.newName(CacheFile.partSuffix)
        guard let file = folder.create(part) else { return nil }
        self.folder = folder
        self.file = file
    }

    deinit {
        if !isDone { folder.remove(part) }
    }

    func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        checksum.update(bytes)
        length += Int64(bytes.count)
        return folder.write(bytes, to: file)
    }

    /// Gives the body its name; from then on it lacks nothing but a card that speaks of it.
    func finish(key: String) -> CacheBody? {
        let name = folder.newName(CacheFile.bodySuffix, key: key)
        guard (try? folder.files.close(file).get()) != nil,
            (try? folder.files.rename(folder.entry(part), to: folder.entry(name)).get()) != nil
        else { return nil }
        isDone = true
        return CacheBody(name: name, length: length, checksum: Hexadecimal.lower(checksum.finish()))
    }
}
