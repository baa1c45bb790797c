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
            var parser = LinkParser(value)
            while let link = parser.next() {
                guard !link.hasAnchor, link.relations.contains(where: { $0.isSameHeaderName(as: relation) }),
                    let target = try? WebAddress(link.target, foundAt: address), let url = target.url
                else { continue }
                return url
            }
        }
        return nil
    }
}

/// One link of a `Link` header.
struct Link: Equatable {
    /// The reference between the angle brackets, as the server wrote it.
    let target: String
    let relations: [String]
    /// A Boolean value that indicates whether the link belongs to another resource than the response does.
    let hasAnchor: Bool
}

/// A parser of the value of a `Link` header, which returns one link after another and skips invalid text.
///
/// Parameters other than `rel` and `anchor` are ignored, and so are parameters in extended form, such as `title*`.
struct LinkParser {
    private var scanner: HeaderScanner

    init(_ value: String) {
        scanner = HeaderScanner(value)
    }

    mutating func next() -> Link? {
        while !scanner.isAtEnd {
            scanner.skip { $0.isBlank || $0 == UInt8(ascii: ",") }
            if scanner.take(UInt8(ascii: "<")) {
                let target = scanner.text { $0 != UInt8(ascii: ">") }
                guard scanner.take(UInt8(ascii: ">")) else { return nil }
                let link = link(to: target)
                scanner.skipToComma()
                if let link { return link }
            } else {
                scanner.skipToComma()
            }
        }
        return nil
    }

    /// Reads the parameters of a link, or returns `nil` if a quoted string in them has no end.
    private mutating func link(to target: String) -> Link? {
        var relations: String?
        var hasAnchor = false
        scanner.skip { $0.isBlank }
        while scanner.take(UInt8(ascii: ";")) {
            scanner.skip { $0.isBlank }
            let name = scanner.token() ?? ""
            scanner.skip { $0.isBlank }
            var value = ""
            if scanner.take(UInt8(ascii: "=")) {
                scanner.skip { $0.isBlank }
                guard let read = parameterValue() else { return nil }
                value = read
                scanner.skip { $0.isBlank }
            }
            switch name.asciiLowercased {
            // RFC 8288 has parsers ignore every rel parameter but the first.
            case "rel": relations = relations ?? value
            case "anchor": hasAnchor = true
            default: break
            }
        }
        let names = (relations ?? "").split { $0 == " " || $0 == "\t" }.map(String.init)
        return Link(target: target, relations: names, hasAnchor: hasAnchor)
    }

    private mutating func parameterValue() -> String? {
        if scanner.isAt(UInt8(ascii: "\"")) { return scanner.quoted() }
        return scanner.text { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: ",") }
    }
}
