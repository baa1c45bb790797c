// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

extension ResponseHead {
    /// Returns the URL of a link in the `Link` headers of the response (RFC 8288), such as the URL of the next page.
    ///
    /// ```swift
    /// func firstTwoPages(of shop: NetworkBase) async throws -> [String] {
    ///     let first = shop.get("albums", as: [String].self)
    ///     let albums = try await first.run()
    ///     guard let next = first.responseHead?.link("next") else { return albums }
    ///     return albums + (try await shop.get(next, as: [String].self).run())
    /// }
    /// ```
    ///
    /// The method resolves a relative URL against the ``url`` of the response. The method removes any user name and
    /// password from the result. The origin of the result can differ from the origin of the response. The method
    /// ignores links with an `anchor` parameter, because they belong to another resource.
    ///
    /// - Parameter relation: The relation type, such as `next`, `prev`, `first` or `last`. The comparison is not
    ///   case-sensitive.
    /// - Returns: The URL of the first link with the relation type, or `nil` if the response contains no such link.
    public func link(_ relation: String) -> URL? {
        // Unlike a redirect, a link does not inherit the fragment of the page.
        guard headers.contains("Link"), let page = WebAddress(url), let address = try? WebAddress(page.resource) else {
            return nil
        }
        for value in headers.values("Link") {
            var scanner = HeaderScanner(value)
            while let link = scanner.link() {
                guard !link.hasAnchor, link.relations.contains(where: { $0.isSameHeaderName(as: relation) }),
                    let target = try? WebAddress(link.target, foundAt: address), let url = target.url
                else { continue }
                return url
            }
        }
        return nil
    }
}

// A `Link` header. Parameters other than `rel` and `anchor` are ignored, and so are parameters in extended form, such
// as `title*`.
extension HeaderScanner {
    /// The reference between the angle brackets, as the server wrote it, the relations, and whether the link belongs to
    /// another resource than the response does.
    fileprivate typealias Link = (target: String, relations: [String], hasAnchor: Bool)

    /// Reads the next link, and skips invalid text.
    fileprivate mutating func link() -> Link? {
        while !isAtEnd {
            skip { $0.isBlank || $0 == UInt8(ascii: ",") }
            if take(UInt8(ascii: "<")) {
                let target = text { $0 != UInt8(ascii: ">") }
                guard take(UInt8(ascii: ">")) else { return nil }
                let link = link(to: target)
                skipToComma()
                if let link { return link }
            } else {
                skipToComma()
            }
        }
        return nil
    }

    /// Reads the parameters of a link, or returns `nil` if a quoted string in them has no end.
    private mutating func link(to target: String) -> Link? {
        var relations: String?
        var hasAnchor = false
        skip { $0.isBlank }
        while take(UInt8(ascii: ";")) {
            skip { $0.isBlank }
            let name = token() ?? ""
            skip { $0.isBlank }
            var value = ""
            if take(UInt8(ascii: "=")) {
                skip { $0.isBlank }
                guard let read = linkParameter() else { return nil }
                value = read
                skip { $0.isBlank }
            }
            switch name.asciiLowercased {
            // RFC 8288 has parsers ignore every rel parameter but the first.
            case "rel": relations = relations ?? value
            case "anchor": hasAnchor = true
            default: break
            }
        }
        let names = (relations ?? "").split { $0 == " " || $0 == "\t" }.map(String.init)
        return (target, names, hasAnchor)
    }

    private mutating func linkParameter() -> String? {
        if isAt(UInt8(ascii: "\"")) { return quoted() }
        return text { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: ",") }
    }
}
