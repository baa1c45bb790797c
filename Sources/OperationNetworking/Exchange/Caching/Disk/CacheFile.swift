// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// One file in the folder of a cache, and what its name tells.
package struct CacheFile: Equatable, Sendable {
    package let name: String
    package let size: Int64
    /// When it was last written or used.
    package let used: Date

    package init(name: String, size: Int64, used: Date) {
        self.name = name
        self.size = size
        self.used = used
    }

    static let partSuffix = ".part"
    static let cardSuffix = ".card"
    static let bodySuffix = ".body"
    /// What was forgotten last, and what values are hidden with: both stay whatever is thrown away.
    static let changes = "changes"
    static let secret = "secret"

    /// Whether it is still being written, or was when a program ended.
    package var isPart: Bool { name.hasSuffix(Self.partSuffix) }
    package var isCard: Bool { name.hasSuffix(Self.cardSuffix) }
    package var isBody: Bool { name.hasSuffix(Self.bodySuffix) }
    /// What the files of one address have in common.
    package var key: String { String(name.prefix { $0 != "." && $0 != "-" }) }

    /// The key of an address.
    package static func key(of resource: String) -> String {
        Hexadecimal.lower(SHA256.checksum(of: resource.utf8, startingWith: SHA256()).prefix(16))
    }
}
