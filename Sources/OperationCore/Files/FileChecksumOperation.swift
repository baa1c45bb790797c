// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// An operation that computes the checksum of a file of any size with little memory.
///
/// ```swift
/// let checksum = FileChecksumOperation(URL(fileURLWithPath: "/etc/hostname"), algorithm: .sha256)
/// print(try await checksum.run())
/// ```
public final class FileChecksumOperation: FileOperation<FileChecksum>, @unchecked Sendable {
    // Sendable: it adds only constants.

    /// The file to read.
    public let url: URL
    /// The algorithm of the checksum.
    public let algorithm: ChecksumAlgorithm

    /// Creates an operation that computes the checksum of a file.
    ///
    /// - Parameters:
    ///   - url: The file to read.
    ///   - algorithm: The algorithm of the checksum. The default is SHA-256.
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

/// A checksum together with its algorithm.
public struct FileChecksum: Sendable, Hashable, CustomStringConvertible {
    /// The algorithm of the checksum.
    public let algorithm: ChecksumAlgorithm
    /// The bytes of the checksum, with the most significant byte first.
    public let bytes: [UInt8]

    /// Creates a checksum from its bytes.
    public init(algorithm: ChecksumAlgorithm, bytes: [UInt8]) {
        self.algorithm = algorithm
        self.bytes = bytes
    }

    /// Creates a checksum from its hexadecimal digits, in upper or lower case.
    ///
    /// The initializer returns `nil` if the text contains another character, or if its length does not match the
    /// algorithm.
    public init?(algorithm: ChecksumAlgorithm, hexadecimal text: String) {
        let digits = text.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
        var nothing = algorithm.makeStream()
        guard digits.count == text.utf8.count, digits.count == nothing.finish().count * 2 else { return nil }
        self.algorithm = algorithm
        bytes = stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] * 16 + digits[$0 + 1]) }
    }

    /// The checksum as hexadecimal digits in lower case.
    public var hexadecimal: String {
        bytes.map { byte in
            let digits = String(byte, radix: 16)
            return byte < 16 ? "0" + digits : digits
        }.joined()
    }

    /// The checksum as hexadecimal digits in lower case.
    public var description: String { hexadecimal }
}

/// An algorithm that computes a checksum.
public struct ChecksumAlgorithm: Sendable, Hashable, CustomStringConvertible {
    /// The name of the algorithm, as in command-line tools and headers.
    public let description: String
    private let create: @Sendable () -> any ChecksumStream

    private init(_ name: String, _ create: @escaping @Sendable () -> any ChecksumStream) {
        description = name
        self.create = create
    }

    /// SHA-256 (FIPS 180-4), which is the recommended algorithm.
    public static let sha256 = ChecksumAlgorithm("sha256") { SHA256() }
    /// SHA-1, which detects accidental changes but does not protect against forgery.
    ///
    /// Use this algorithm only if no other checksum of the file is known.
    public static let sha1 = ChecksumAlgorithm("sha1") { SHA1() }
    /// MD5, which detects accidental changes but does not protect against forgery.
    ///
    /// Use this algorithm only if no other checksum of the file is known.
    public static let md5 = ChecksumAlgorithm("md5") { MD5() }
    /// CRC-32 as in ZIP, gzip and PNG, which is fast and detects only accidental changes.
    public static let crc32 = ChecksumAlgorithm("crc32") { CRC32() }

    /// Returns a new stream that computes a checksum.
    package func makeStream() -> any ChecksumStream { create() }

    /// Returns a Boolean value that indicates whether two algorithms have the same name.
    public static func == (left: Self, right: Self) -> Bool { left.description == right.description }

    /// Hashes the name of the algorithm.
    public func hash(into hasher: inout Hasher) { hasher.combine(description) }
}
