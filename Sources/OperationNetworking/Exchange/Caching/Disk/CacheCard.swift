// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// What is kept at one address: responses that differ by the request's fields, each with the place of its body.
///
/// On disk it is eight bytes that say what it is, the SHA-256 of the rest, and the rest. A card of which a byte is
/// missing or changed is none.
package struct CacheCard: Equatable, Sendable {
    package struct Variant: Equatable, Sendable, Codable {
        package var response: CachedResponse
        package let body: CacheBody
    }

    private struct Contents: Codable {
        let resource: String
        let variants: [Variant]
    }

    package let resource: String
    package private(set) var variants: [Variant]

    private static let mark = Array("OKCACHE1".utf8)
    private static let variantLimit = 8

    package init(resource: String) {
        self.resource = resource
        variants = []
    }

    /// Reads a card; nil if it is damaged, or about another address.
    package init?(_ bytes: [UInt8], resource: String) {
        let start = Self.mark.count + 32
        guard bytes.count > start, bytes.starts(with: Self.mark),
            bytes[Self.mark.count..<start].elementsEqual(SHA256.checksum(of: bytes[start...], startingWith: SHA256())),
            let contents = try? JSONDecoder().decode(Contents.self, from: Data(bytes[start...])),
            contents.resource == resource
        else { return nil }
        self.resource = resource
        variants = contents.variants
    }

    package func encoded() -> [UInt8]? {
        guard let contents = try? JSONEncoder().encode(Contents(resource: resource, variants: variants)) else {
            return nil
        }
        return Self.mark + SHA256.checksum(of: contents, startingWith: SHA256()) + contents
    }

    package var responses: [CachedResponse] { variants.map(\.response) }

    /// Puts a response in the place of the one to the same fields, and returns the bodies that are no longer needed.
    package mutating func put(_ variant: Variant) -> [CacheBody] {
        var removed = variants.filter { $0.response.selecting == variant.response.selecting }
        variants.removeAll { $0.response.selecting == variant.response.selecting }
        variants.append(variant)
        while variants.count > Self.variantLimit { removed.append(variants.removeFirst()) }
        return removed.map(\.body)
    }

    /// Puts a response in the place of an older form of itself; returns whether it was there.
    package mutating func freshen(_ body: CacheBody, with response: CachedResponse) -> Bool {
        guard let index = variants.firstIndex(where: { $0.body == body }) else { return false }
        variants[index].response = response
        return true
    }

    /// Takes a response out; returns whether it was there.
    package mutating func remove(_ body: CacheBody) -> Bool {
        let count = variants.count
        variants.removeAll { $0.body == body }
        return variants.count < count
    }
}
