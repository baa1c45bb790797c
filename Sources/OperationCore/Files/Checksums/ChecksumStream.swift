// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A checksum that is reckoned as the bytes come.
package protocol ChecksumStream: Sendable {
    /// Adds bytes.
    mutating func update(_ bytes: UnsafeRawBufferPointer)

    /// The checksum of all bytes so far; nothing may be added afterwards.
    mutating func finish() -> [UInt8]
}

extension ChecksumStream {
    /// The checksum of bytes that are all there.
    package static func checksum(of bytes: some Sequence<UInt8>, startingWith stream: Self) -> [UInt8] {
        var stream = stream
        Array(bytes).withUnsafeBytes { stream.update($0) }
        return stream.finish()
    }
}
