// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// An operation that computes the checksum of a file of any size with little memory.
///
/// ```swift
/// let checksum = FileChecksumOperation(
///     URL(fileURLWithPath: "/etc/hostname"), algorithm: .sha256)
/// print(try await checksum.run())
/// ```
public final class FileChecksumOperation: FileOperation<FileChecksum>, @unchecked Sendable {
    // Sendable: it adds only constants.

    /// The URL of the file to read.
    public let url: URL
    /// The checksum algorithm.
    package let algorithm: ChecksumAlgorithm

    /// Creates an operation that computes the checksum of a file.
    ///
    /// - Parameters:
    ///   - url: The URL of the file to read.
    ///   - algorithm: The checksum algorithm. The default is SHA-256.
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
