// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A path, or one name in a directory, as the system sees it: bytes, which need not be text.
package struct PathBytes: Hashable, Sendable, CustomStringConvertible {
    // With the zero at the end.
    private let characters: [CChar]

    /// Takes over bytes that have no zero among them.
    package init(_ bytes: some Sequence<UInt8>) {
        characters = bytes.map { CChar(bitPattern: $0) } + [0]
    }

    package init(_ text: String) {
        self.init(text.utf8)
    }

    package static let here = PathBytes(".")
    package static let up = PathBytes("..")

    package var bytes: some RandomAccessCollection<UInt8> {
        characters.dropLast().lazy.map { UInt8(bitPattern: $0) }
    }

    /// The text; bytes that are none are shown as replacement characters.
    package var description: String { String(decoding: bytes, as: UTF8.self) }

    func withPointer<Result>(_ body: (UnsafePointer<CChar>?) -> Result) -> Result {
        characters.withUnsafeBufferPointer { body($0.baseAddress) }
    }
}
