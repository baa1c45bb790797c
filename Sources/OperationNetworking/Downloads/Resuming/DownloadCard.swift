// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// What is known of a part: it lies beside it on the disk, so that somebody can go on.
package struct DownloadCard: Hashable, Sendable, Codable {
    /// Of what it is a part: a hash, for URLs have secrets in them.
    package var source: String
    /// Which version; a part without one is never gone on with.
    package var validator: DownloadValidator?
    /// How many bytes the whole has, if that is known.
    package var total: Int64?
    /// The name that the server gave, cleaned.
    package var fileName: String?
    /// So many bytes of the part are on the disk for certain.
    package var synchronized: Int64 = 0
    /// Since when the system runs: all that was written since then is there, synchronized or not.
    package var boot: String?

    package init(source: String) {
        self.source = source
    }

    /// How many bytes of a part of a length can be trusted.
    package func trusted(of length: Int64, boot: String?) -> Int64 {
        let isSameBoot = boot != nil && boot == self.boot
        return min(length, isSameBoot ? length : synchronized)
    }

    /// The card as it is written: a line with the checksum of the rest, and the rest.
    package func text() throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let content = Array(try encoder.encode(self))
        return Array((Self.title + Self.checksum(of: content) + "\n").utf8) + content
    }

    /// Reads a card; nil if it is damaged, of another version, or says what no card says.
    package init?(text: [UInt8]) {
        guard let lineEnd = text.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        let content = Array(text[(lineEnd + 1)...])
        guard text[..<lineEnd].elementsEqual((Self.title + Self.checksum(of: content)).utf8),
            let card = try? JSONDecoder().decode(DownloadCard.self, from: Data(content)),
            card.synchronized >= 0, card.total ?? 0 >= 0, card.validator?.isSound ?? true
        else { return nil }
        self = card
        // What lies on a disk is trusted with it as little as a server.
        fileName = card.fileName.map { DownloadFileName.cleaned($0) }
    }

    private static let title = "OperationKit download 1 "

    private static func checksum(of content: [UInt8]) -> String {
        Hexadecimal.lower(CRC32.checksum(of: content, startingWith: CRC32()))
    }
}
