// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

// The same request with something changed, checked again.
extension NetworkRequest {
    /// The request with that header field, in the place of all of that name.
    public func with(_ name: String, _ value: String) throws(NetworkError) -> NetworkRequest {
        var headers = headers
        guard name.utf8.count != "Content-Length".utf8.count else {
            headers[name] = value
            return try NetworkRequest(method, url: url, headers: headers, body: body, options: options)
        }
        // All else was checked before.
        headers[name] = try RequestChecks(method: method, url: url).checkedValue(HeaderFields.Field(name, value))
        return NetworkRequest(self, checkedHeaders: headers)
    }

    /// The request with that value in its query, in the place of all of that name; the rest of the query stays as it is.
    public func with(query name: String, _ value: String) throws(NetworkError) -> NetworkRequest {
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else {
            throw NetworkError(code: .invalidURL, phase: .checking, message: "The URL cannot be taken apart.")
        }
        // Taken apart as text: to decode and encode the others anew would change a plus sign, and what was signed.
        let query = parts.percentEncodedQuery ?? ""
        let others =
            query.isEmpty
            ? []
            : query.split(separator: "&", omittingEmptySubsequences: false).filter { pair in
                pair.prefix { $0 != "=" }.removingPercentEncoding != name
            }
        let own = "\(Self.encoded(name))=\(Self.encoded(value))"
        parts.percentEncodedQuery = (others.map(String.init) + [own]).joined(separator: "&")
        return try NetworkRequest(method, url: parts.url ?? url, headers: headers, body: body, options: options)
    }

    /// Whatever means something in a query is encoded, and so is a plus sign, which may mean a space.
    private static func encoded(_ text: String) -> String {
        let bytes = text.utf8.map { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: String(UnicodeScalar(byte))
            default: "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return bytes.joined()
    }

    /// The request, transferred in that way.
    func with(_ options: TransferOptions) throws(NetworkError) -> NetworkRequest {
        try RequestChecks(method: method, url: url).check(options)
        return NetworkRequest(self, checkedOptions: options)
    }

    /// The request with those header fields of which it has none of the same name.
    func completed(by others: HeaderFields) throws(NetworkError) -> NetworkRequest {
        let own = headers
        let missing = others.filter { !own.contains($0.name) }
        if missing.isEmpty { return self }
        return try NetworkRequest(
            method, url: url, headers: HeaderFields(Array(own) + missing), body: body, options: options)
    }

    /// The request with that body.
    public func with(body new: RequestBody) throws(NetworkError) -> NetworkRequest {
        var headers = headers
        // What the old body said of itself does not hold for the new one.
        if headers["Content-Type"] == body.contentType { headers["Content-Type"] = nil }
        if headers["Content-Encoding"] == body.contentEncoding { headers["Content-Encoding"] = nil }
        return try NetworkRequest(method, url: url, headers: headers, body: new, options: options)
    }
}
