// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Which of several responses at one address fits a request (RFC 9111, section 4.1).
package enum CacheSelection {
    /// What the request says in the fields that the response depends on.
    ///
    /// `Authorization` is always among them, though the RFC does not ask for that of a private cache: what one user got
    /// is never shown to another. Its checksum is kept, not the secret.
    ///
    /// So is `Accept-Encoding` where the body is kept as it was compressed: who did not ask for that could not read it.
    package static func fields(
        of request: HeaderFields, namedBy response: HeaderFields, isDecoded: Bool = false
    ) -> [String: [String]] {
        var fields: [String: [String]] = [:]
        let isCompressed = !isDecoded && response.contains("Content-Encoding")
        for name in names(response) + ["authorization"] + (isCompressed ? ["accept-encoding"] : []) {
            fields[name] = value(of: name, in: request)
        }
        return fields
    }

    /// Whether a response that depends on these fields fits a request.
    package static func fits(_ selecting: [String: [String]], _ request: HeaderFields) -> Bool {
        selecting.allSatisfy { name, value in value == self.value(of: name, in: request) }
    }

    /// Whether a response fits no other request than its own.
    package static func fitsNothing(_ response: HeaderFields) -> Bool { names(response).contains("*") }

    private static func names(_ response: HeaderFields) -> [String] {
        response.values("Vary").flatMap { $0.split(separator: ",") }
            .map { String($0).trimmedBlanks.asciiLowercased }.filter { !$0.isEmpty }
    }

    private static func value(of name: String, in request: HeaderFields) -> [String] {
        let values = request.values(name)
        guard !values.isEmpty else { return [] }
        let joined = values.map(\.trimmedBlanks).joined(separator: ", ")
        guard ["authorization", "cookie"].contains(name) else { return [joined] }
        return [Hexadecimal.lower(SHA256.checksum(of: joined.utf8, startingWith: SHA256()))]
    }
}
