// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// What a folder of a cache hides the values of requests with: bytes that nobody else has.
package struct CacheKey: Hashable, Sendable {
    package static let size = 32

    /// For what is never written.
    package static let none = CacheKey([])

    package let bytes: [UInt8]

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    package static func random() -> CacheKey {
        CacheKey((0..<size).map { _ in UInt8.random(in: .min ... .max) })
    }

    /// A checksum that tells whether two values are the same, and nothing of what they are.
    func hidden(_ text: String) -> String {
        Hexadecimal.lower(SHA256.checksum(of: bytes + Array(text.utf8), startingWith: SHA256()))
    }
}
