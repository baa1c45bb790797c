// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Which of several responses at one address fits a request (RFC 9111, section 4.1).
package enum CacheSelection {
    /// What the request says in the fields that the response depends on.
    ///
    /// `Authorization` is always among them, though the RFC does not ask for that of a private cache: what one user got
    /// is never shown to another. `Cookie` is among them if the response is `private`, because two cookie jars, or two
    /// users of one jar, may share the folder.
    ///
    /// So is `Accept-Encoding` where the body is kept as it was compressed: who did not ask for that could not read it. And
    /// who wants a body decompressed never gets what was kept for somebody who wants it as it comes, nor the other way
    /// round.
    ///
    /// Of each value a checksum is kept, which says nothing to who does not have the key.
    package static func fields(
        of request: HeaderFields, namedBy response: HeaderFields, isDecoded: Bool = false, key: CacheKey = .none
    ) -> [String: [String]] {
        var fields: [String: [String]] = [:]
        let isCoded = response.contains("Content-Encoding")
        var names = names(response) + ["authorization"]
        if isCoded, !isDecoded { names.append("accept-encoding") }
        if CacheControl(response).has("private") { names.append("cookie") }
        for name in names {
            fields[name] = value(of: name, in: request, key)
        }
        if isCoded { fields[form] = request.values(form) }
        return fields
    }

    /// Returns whether a stored response fits a request.
    ///
    /// A `private` response without the cookies of its request was stored by a version of this library that did not
    /// store them. It could belong to another cookie jar, so it fits no request.
    package static func fits(_ response: CachedResponse, _ request: HeaderFields, key: CacheKey = .none) -> Bool {
        if response.selecting["cookie"] == nil, CacheControl(response.headers).has("private") { return false }
        return response.selecting.allSatisfy { name, value in
            value == (name == form ? request.values(form) : self.value(of: name, in: request, key))
        }
    }

    /// The fields of a request, and beside them whether it wants its body decompressed.
    package static func wishes(_ headers: HeaderFields, _ options: TransferOptions) -> HeaderFields {
        var wishes = headers
        let wantsDecoded = options.decodesContent && !headers.contains("Accept-Encoding")
        wishes.add(form, wantsDecoded ? "decoded" : "as it comes")
        return wishes
    }

    /// No field has such a name.
    private static let form = ":form"

    /// Whether a response fits no other request than its own.
    package static func fitsNothing(_ response: HeaderFields) -> Bool { names(response).contains("*") }

    private static func names(_ response: HeaderFields) -> [String] {
        response.values("Vary").flatMap { $0.split(separator: ",") }
            .map { String($0).trimmedBlanks.asciiLowercased }.filter { !$0.isEmpty }
    }

    private static func value(of name: String, in request: HeaderFields, _ key: CacheKey) -> [String] {
        let values = request.values(name)
        guard !values.isEmpty else { return [] }
        let joined = values.map(\.trimmedBlanks).joined(separator: ", ")
        return [key.hidden(joined)]
    }
}
