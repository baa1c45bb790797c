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
        // A part without an equals sign may be a secret as a whole.
        let items = query.split(separator: "&", omittingEmptySubsequences: false).map { item in
            item.firstIndex(of: "=").map { "\(item[..<$0])=***" } ?? (item.isEmpty ? "" : "***")
        }
        return "\(text)?\(items.joined(separator: "&"))"
    }
}
