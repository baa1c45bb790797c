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

    /// The request with that value in its query, in the place of all of that name.
    public func with(query name: String, _ value: String) throws(NetworkError) -> NetworkRequest {
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else {
            throw NetworkError(code: .invalidURL, phase: .checking, message: "The URL cannot be taken apart.")
        }
        parts.queryItems =
            (parts.queryItems ?? []).filter { $0.name != name } + [URLQueryItem(name: name, value: value)]
        return try NetworkRequest(method, url: parts.url ?? url, headers: headers, body: body, options: options)
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

extension RequestOrigin {
    /// The origin of a URL; nil if nothing can be sent there.
    init?(of url: URL) {
        guard let origin = RequestOrigin(ofPlain: url.absoluteString) ?? (try? NetworkRequest(url: url))?.origin else {
            return nil
        }
        self = origin
    }
}
