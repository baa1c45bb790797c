// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

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
