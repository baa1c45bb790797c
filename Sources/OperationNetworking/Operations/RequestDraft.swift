// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a request is made of, anew for each attempt.
struct RequestDraft: Sendable {
    enum Head: Sendable {
        case url(URL)
        case foundation(URLRequest)
        case checked(NetworkRequest)
    }

    var head: Head
    var method = "GET"
    var body = RequestBody.none
    /// Limits that were set on the operation; nil if none were.
    var options: TransferOptions?

    /// The request as it is, without a hook.
    func plain() throws(NetworkError) -> NetworkRequest {
        switch head {
        case .url(let url): try NetworkRequest(method, url: url, body: body, options: options ?? .standard)
        case .foundation: try with(foundation)
        case .checked(let request): try options.map(request.with) ?? request
        }
    }

    /// The request in the form in which the hook gets it; the body is kept apart, but for the own one of a request of
    /// Foundation's.
    var foundation: URLRequest {
        switch head {
        case .url(let url):
            var request = URLRequest(url: url)
            request.httpMethod = method
            return request
        case .foundation(var request):
            // The operation was given another one, which only the hook may replace.
            if !body.isNone { (request.httpBody, request.httpBodyStream) = (nil, nil) }
            return request
        case .checked(let checked):
            var request = URLRequest(url: checked.url)
            request.httpMethod = checked.method
            for field in checked.headers { request.addValue(field.value, forHTTPHeaderField: field.name) }
            return request
        }
    }

    /// What the hook made of it: its own body, if it has one, takes the place of the operation's.
    func with(_ request: URLRequest) throws(NetworkError) -> NetworkRequest {
        var (body, options) = (body, options)
        if case .checked(let checked) = head { (body, options) = (checked.body, options ?? checked.options) }
        let made = try NetworkRequest(request, options: options ?? .standard)
        guard made.body.isNone, !body.isNone else { return made }
        return try NetworkRequest(
            made.method, url: made.url, headers: made.headers, body: body, options: made.options)
    }
}

extension RequestDraft {
    /// The request for a task of Foundation's, which takes its body along if that is in memory or a whole file.
    var foundationWithBody: URLRequest {
        var request = foundation
        guard case .checked(let checked) = head else { return request }
        switch checked.body.source {
        case .data(let data): request.httpBody = data
        case .file(let region) where region.isWhole: request.httpBodyStream = InputStream(url: region.url)
        case .file, .stream, .none: break
        }
        return request
    }

    /// Whether ``foundationWithBody`` leaves the body out.
    var losesBody: Bool {
        guard case .checked(let checked) = head else { return false }
        return switch checked.body.source {
        case .stream: true
        case .file(let region): !region.isWhole
        case .data, .none: false
        }
    }
}

extension NetworkRequest {
    /// The same request, transferred in another way.
    fileprivate func with(_ options: TransferOptions) throws(NetworkError) -> NetworkRequest {
        try NetworkRequest(method, url: url, headers: headers, body: body, options: options)
    }
}
