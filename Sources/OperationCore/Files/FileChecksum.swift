// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

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
