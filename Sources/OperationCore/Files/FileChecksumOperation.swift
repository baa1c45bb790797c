// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Takes the checksum of a file, however large, in little memory.
///
/// ```swift
/// let checksum = FileChecksumOperation(URL(fileURLWithPath: "/etc/hostname"), algorithm: .sha256)
/// print(try await checksum.run())
/// ```
public final class FileChecksumOperation: FileOperation<FileChecksum>, @unchecked Sendable {
    // Sendable: it adds only constants.

    /// The file.
    public let url: URL
    /// How the checksum is reckoned.
    public let algorithm: ChecksumAlgorithm

    /// Makes an operation that takes the checksum of a file.
    public init(_ url: URL, algorithm: ChecksumAlgorithm = .sha256) {
        self.url = url
        self.algorithm = algorithm
        super.init()
    }

    override func perform(_ work: FileWork) throws(FileInterruption) -> FileChecksum {
        let address = try FileAddress(url, for: .checksumming)
        let place = FilePlace(.checksumming, address.description)
        var source = try FileSource(FolderEntry(address.path), at: place, work: work)
        work.expect(bytes: source.expectedBytes)
        var stream = algorithm.makeStream()
        while let chunk = try source.next() {
            stream.update(chunk)
            work.advance(bytes: chunk.count)
        }
        return FileChecksum(algorithm: algorithm, bytes: stream.finish())
    }
}
