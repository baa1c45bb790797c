// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

extension LogRedaction {
    /// Returns a URL without its secrets, in which asterisks replace all values of the query.
    func withoutSecrets(in url: URL) -> String {
        let reference = AddressReference(url.absoluteString)
        let text = withoutSecrets(inPath: Self.place(of: reference) + reference.path)
        guard let query = reference.query else { return text }
        let items = query.split(separator: "&", omittingEmptySubsequences: false).map { item in
            shownName(ofPart: item).map { "\($0)=***" } ?? (item.isEmpty ? "" : "***")
        }
        return "\(text)?\(items.joined(separator: "&"))"
    }

    /// Returns the normalized origin.
    ///
    /// If the URL has no valid origin, the function returns its scheme and its authority without user name and
    /// password.
    private static func place(of reference: AddressReference) -> String {
        if let origin = reference.origin { return origin }
        let scheme = reference.scheme.map { $0 + ":" } ?? ""
        guard let authority = reference.authority else { return scheme }
        let at = authority.lastIndex(of: "@")
        return scheme + "//" + (at.map { authority[$0...].dropFirst() } ?? authority[...])
    }

    /// Returns the name in one part of a query, or `nil` if the whole part may be a secret.
    ///
    /// A part without an equals sign may be a secret. So may a part that only ends with equals signs, as Base64 does,
    /// unless it is as short as a name.
    package func shownName(ofPart part: Substring) -> Substring? {
        // Compare scalars, because a combining character after the equals sign would make it a different `Character`.
        guard let equals = part.unicodeScalars.firstIndex(of: "=") else { return nil }
        let (name, value) = (part[..<equals], part.unicodeScalars[equals...].dropFirst())
        if value.isEmpty { return name.utf8.count > Self.longestBareName ? nil : name }
        if value.allSatisfy({ $0 == "=" }) { return nil }
        // The text before the sign may be a pair itself, or a credential: `token%3D…=1`.
        let isPlain = !name.utf8.contains { "%+:".utf8.contains($0) }
        return isPlain || withoutNamedSecrets(String(name)) == name ? name : nil
    }

    private static let longestBareName = 16
}
