// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Which request something is about, without its secrets: fit for logs and messages.
public struct RequestSummary: Sendable, Hashable, CustomStringConvertible {
    /// The method.
    public let method: String
    /// The URL without user, password and fragment, and with each value of its query as three stars.
    ///
    /// In the path, JSON web tokens and the values of parameters with secret names, such as `;jsessionid=…`, are three
    /// stars, too.
    public let url: String

    /// Summarises a request.
    public init(method: String, url: URL) {
        self.init(method: method, url: url, .secrets)
    }

    init(method: String, url: URL, _ redaction: LogRedaction) {
        self.method = method
        self.url = redaction.keepsSecrets ? url.absoluteString : Self.redacted(url, redaction)
    }

    /// Creates a summary that also leaves out what a redaction calls a secret in the path.
    init(_ summary: RequestSummary, _ redaction: LogRedaction) {
        method = summary.method
        let path = summary.url.prefix { $0 != "?" }
        url = redaction.withoutSecrets(inPath: String(path)) + summary.url[path.endIndex...]
    }

    /// Method and URL.
    public var description: String { "\(method) \(url)" }

    private static func redacted(_ url: URL, _ redaction: LogRedaction) -> String {
        let reference = AddressReference(url.absoluteString)
        let text = redaction.withoutSecrets(inPath: place(of: reference) + reference.path)
        guard let query = reference.query else { return text }
        let items = query.split(separator: "&", omittingEmptySubsequences: false).map { item in
            name(ofPart: item, redaction).map { "\($0)=***" } ?? (item.isEmpty ? "" : "***")
        }
        return "\(text)?\(items.joined(separator: "&"))"
    }

    /// The normalized origin or, if the URL has none, the text in its place without user and password.
    private static func place(of reference: AddressReference) -> String {
        if let origin = reference.origin { return origin }
        let scheme = reference.scheme.map { $0 + ":" } ?? ""
        guard let authority = reference.authority else { return scheme }
        let at = authority.lastIndex(of: "@")
        return scheme + "//" + (at.map { authority[$0...].dropFirst() } ?? authority[...])
    }

    /// The name in a part of a query; nil of a part that may be a secret as a whole.
    ///
    /// That is one without an equals sign, and one that only ends with such signs, as bytes in base64 do, unless it is as
    /// short as names are.
    static func name(ofPart part: Substring, _ redaction: LogRedaction) -> Substring? {
        // Not by characters: a sign that joins the equals sign would make another one of it.
        guard let equals = part.unicodeScalars.firstIndex(of: "=") else { return nil }
        let (name, value) = (part[..<equals], part.unicodeScalars[equals...].dropFirst())
        if value.isEmpty { return name.utf8.count > longestBareName ? nil : name }
        if value.allSatisfy({ $0 == "=" }) { return nil }
        // The text before the sign may be a pair itself, or a credential: `token%3D…=1`.
        let isPlain = !name.utf8.contains { "%+:".utf8.contains($0) }
        return isPlain || redaction.withoutNamedSecrets(String(name)) == name ? name : nil
    }

    private static let longestBareName = 16
}
