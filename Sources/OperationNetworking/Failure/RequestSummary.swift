// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Which request something is about, without its secrets: fit for logs and messages.
public struct RequestSummary: Sendable, Hashable, CustomStringConvertible {
    /// The method.
    public let method: String
    /// The URL without user, password and fragment, and with each value of its query as three stars.
    public let url: String

    /// Summarises a request.
    public init(method: String, url: URL) {
        self.method = method
        self.url = Self.redacted(url)
    }

    /// Method and URL.
    public var description: String { "\(method) \(url)" }

    private static func redacted(_ url: URL) -> String {
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return "(a URL that is none)" }
        parts.percentEncodedUser = nil
        parts.percentEncodedPassword = nil
        parts.fragment = nil
        let query = parts.percentEncodedQuery
        parts.percentEncodedQuery = nil
        guard let text = parts.string else { return "(a URL that is none)" }
        guard let query else { return text }
        let items = query.split(separator: "&", omittingEmptySubsequences: false).map { item in
            name(ofPart: item).map { "\($0)=***" } ?? (item.isEmpty ? "" : "***")
        }
        return "\(text)?\(items.joined(separator: "&"))"
    }

    /// The name in a part of a query; nil of a part that may be a secret as a whole.
    ///
    /// That is one without an equals sign, and one that only ends with such signs, as bytes in base64 do, unless it is as
    /// short as names are.
    static func name(ofPart part: Substring) -> Substring? {
        // Not by characters: a sign that joins the equals sign would make another one of it.
        guard let equals = part.unicodeScalars.firstIndex(of: "=") else { return nil }
        let (name, value) = (part[..<equals], part.unicodeScalars[equals...].dropFirst())
        if value.isEmpty { return name.utf8.count > longestBareName ? nil : name }
        return value.allSatisfy { $0 == "=" } ? nil : name
    }

    private static let longestBareName = 16
}
