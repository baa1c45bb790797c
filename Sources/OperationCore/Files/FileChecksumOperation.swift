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

/// A checksum with the algorithm by which it was reckoned.
public struct FileChecksum: Sendable, Hashable, CustomStringConvertible {
    /// How it was reckoned.
    public let algorithm: ChecksumAlgorithm
    /// The sum, the most significant byte first.
    public let bytes: [UInt8]

    /// A checksum that is known from elsewhere.
    public init(algorithm: ChecksumAlgorithm, bytes: [UInt8]) {
        self.algorithm = algorithm
        self.bytes = bytes
    }

    /// A checksum as it is written, in hexadecimal digits of either case; nil if it is not of the algorithm's length.
    public init?(algorithm: ChecksumAlgorithm, hexadecimal text: String) {
        let digits = text.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
        var nothing = algorithm.makeStream()
        guard digits.count == text.utf8.count, digits.count == nothing.finish().count * 2 else { return nil }
        self.algorithm = algorithm
        bytes = stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] * 16 + digits[$0 + 1]) }
    }

    /// The sum in hexadecimal digits of lower case.
    public var hexadecimal: String {
        bytes.map { byte in
            let digits = String(byte, radix: 16)
            return byte < 16 ? "0" + digits : digits
        }.joined()
    }

    /// The sum in hexadecimal digits of lower case.
    public var description: String { hexadecimal }
}

/// How a checksum is reckoned.
public struct ChecksumAlgorithm: Sendable, Hashable, CustomStringConvertible {
    /// The name, as command-line tools and headers write it.
    public let description: String
    private let create: @Sendable () -> any ChecksumStream

    private init(_ name: String, _ create: @escaping @Sendable () -> any ChecksumStream) {
        description = name
        self.create = create
    }

    /// SHA-256 (FIPS 180-4): the one to choose.
    public static let sha256 = ChecksumAlgorithm("sha256") { SHA256() }
    /// SHA-1, for files whose sum is only known so: against accidents, no longer against forgery.
    public static let sha1 = ChecksumAlgorithm("sha1") { SHA1() }
    /// MD5, for files whose sum is only known so: against accidents, no longer against forgery.
    public static let md5 = ChecksumAlgorithm("md5") { MD5() }
    /// CRC-32 as in ZIP, gzip and PNG: fast, against accidents only.
    public static let crc32 = ChecksumAlgorithm("crc32") { CRC32() }

    /// Begins a checksum.
    package func makeStream() -> any ChecksumStream { create() }

    /// Algorithms are the same when their names are.
    public static func == (left: Self, right: Self) -> Bool { left.description == right.description }

    /// Adds the name.
    public func hash(into hasher: inout Hasher) { hasher.combine(description) }
}
