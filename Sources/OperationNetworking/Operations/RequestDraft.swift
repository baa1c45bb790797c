// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The values from which an operation creates its requests.
struct RequestDraft: Sendable {
    enum Head: Sendable {
        /// No request: a subclass creates it.
        case none
        case url(URL)
        case foundation(URLRequest)
        case checked(NetworkRequest)
    }

    var head: Head
    @Boxed private var upload: (method: String, body: RequestBody)?
    /// The options that were set on the operation, or nil if none were set.
    @Boxed var options: TransferOptions?

    private var body: RequestBody { upload?.body ?? .none }

    init(head: Head, method: String = "GET", body: RequestBody? = nil) {
        self.head = head
        upload = body.map { (method, $0) }
    }

    /// Whether it is certain that the body, if there is one, is in memory.
    var hasBodyInMemory: Bool {
        switch head {
        case .none, .foundation: false
        case .url: body.isInMemory
        case .checked(let request): (body.isNone ? request.body : body).isInMemory
        }
    }

    /// Creates the request, or returns nil if there is none.
    func request() throws(NetworkError) -> NetworkRequest? {
        switch head {
        case .none: return nil
        case .url(let url):
            guard let upload else { return try NetworkRequest(url: url) }
            return try NetworkRequest(upload.method, url: url, body: upload.body)
        case .checked(let request): return body.isNone ? request : try request.with(body: body)
        case .foundation(let request):
            return try body.isNone ? NetworkRequest(request) : NetworkRequest(request, body: body)
        }
    }
}

extension NetworkRequest {
    /// The request in Foundation's form, with a body that is in memory, but without a file or a stream.
    var foundation: URLRequest {
        var request = URLRequest(url: url)
        complete(&request)
        return request
    }

    private func complete(_ request: inout URLRequest) {
        request.httpMethod = method
        for field in headers { request.addValue(field.value, forHTTPHeaderField: field.name) }
        if case .data(let data) = body.source { request.httpBody = data }
        if let idle = options.timeouts.idle, idle == options.timeouts.firstByte {
            request.timeoutInterval = idle / .seconds(1)
        }
    }

    /// Returns the request as a hook changed ``foundation``, with its file or stream unless the hook set a body.
    func changed(to request: URLRequest) throws(NetworkError) -> NetworkRequest {
        var new = Self.body(of: request)
        switch body.source {
        // The hook saw the data, so it may have removed the data.
        case .data(let bytes) where !bytes.isEmpty: break
        case .none, .data, .file, .stream: if new.isNone { new = body }
        }
        return try NetworkRequest(request, options: options, body: new)
    }

    /// Returns the request for a Foundation task, with the body if it is in memory or a whole file.
    ///
    /// - Parameter prepared: The result of the hook that changed ``foundation`` in the same attempt. If nothing has
    ///   changed the request since, this result is returned.
    func foundationWithBody(_ prepared: NetworkOperationOptions.Prepared?) -> URLRequest {
        var request = prepared?.foundation ?? foundation
        if let prepared, !prepared.request.isSame(as: self) || prepared.foundation.url != url {
            request.url = url
            for name in (request.allHTTPHeaderFields ?? [:]).keys { request.setValue(nil, forHTTPHeaderField: name) }
            request.httpBody = nil
            complete(&request)
        }
        if request.httpBodyStream != nil { request.httpBodyStream = nil }
        if case .file(let region) = body.source, region.isWhole {
            request.httpBodyStream = InputStream(url: region.url)
        }
        return request
    }

    /// Whether ``foundationWithBody(_:)`` omits the body.
    var losesBodyInFoundation: Bool {
        switch body.source {
        case .stream: true
        case .file(let region): !region.isWhole
        case .data, .none: false
        }
    }
}
