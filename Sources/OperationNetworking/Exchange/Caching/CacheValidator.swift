// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What a response can be asked about again with (RFC 9110, section 8.8).
package struct CacheValidator: Equatable, Sendable {
    package let tag: String?
    package let modified: String?

    /// The validators of a response; nil if it has none.
    package init?(_ headers: HeaderFields) {
        tag = headers["ETag"].flatMap { $0.isEmpty ? nil : $0 }
        modified = headers["Last-Modified"].flatMap { $0.isEmpty ? nil : $0 }
        if tag == nil, modified == nil { return nil }
    }

    /// Puts the question to the server whether it still holds.
    package func ask(in headers: inout HeaderFields) {
        headers["If-None-Match"] = tag
        headers["If-Modified-Since"] = modified
    }

    /// Whether an answer that it still holds is about this very response (RFC 9111, section 4.3.4).
    package func isMeant(by head: ResponseHead) -> Bool {
        guard let other = CacheValidator(head.headers) else { return true }
        if let tag, let otherTag = other.tag { return Self.opaque(tag) == Self.opaque(otherTag) }
        if let modified, let otherModified = other.modified { return modified == otherModified }
        return true
    }

    /// The tag without the mark of a weak one.
    private static func opaque(_ tag: String) -> String { tag.hasPrefix("W/") ? String(tag.dropFirst(2)) : tag }
}
