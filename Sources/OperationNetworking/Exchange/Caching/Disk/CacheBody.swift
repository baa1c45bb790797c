// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Where the body of a response that is kept lies, and what it is.
package struct CacheBody: Hashable, Sendable, Codable {
    /// The name of the file; no two bodies ever have the same.
    package let name: String
    package let length: Int64
    /// The CRC-32 of all bytes, in hexadecimal digits.
    package let checksum: String
}
