// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A request with a body, whose response is kept in memory and made into a result.
///
/// ```swift
/// func upload(_ file: URL, to url: URL) throws -> NetworkUploadOperation<Int> {
///     let operation = NetworkUploadOperation(url: url, body: .file(try FileRegion(file))) { _, response in
///         response.statusCode
///     }
///     operation.uploadProgressHandler = { print($0) }
///     return operation
/// }
/// ```
///
/// A file is read while it is sent, and never as a whole.
open class NetworkUploadOperation<ResultType: Sendable>: NetworkOperation<Data, ResultType>, @unchecked Sendable {
    // Sendable: it adds no state.

    /// Makes an operation that sends a body.
    ///
    /// - Parameters:
    ///   - url: Where to.
    ///   - method: By which method.
    ///   - body: What to send.
    ///   - urlSession: The session; `.shared`, or none, is the default one.
    ///   - evaluator: Makes the result of the response.
    public init<Session: NetworkSession>(
        url: URL, method: String = "POST", body: RequestBody, urlSession: Session, evaluator: Evaluator? = nil
    ) {
        super.init(RequestDraft(head: .url(url), method: method, body: body), urlSession, evaluator)
    }

    /// Makes an operation that sends a body with the default session.
    public init(url: URL, method: String = "POST", body: RequestBody, evaluator: Evaluator? = nil) {
        super.init(
            RequestDraft(head: .url(url), method: method, body: body), DefaultNetworkSession.standard, evaluator)
    }

    /// Makes an operation that sends a request of Foundation's with a body of ours, or with its own if `body` is none.
    public init<Session: NetworkSession>(
        request: URLRequest, body: RequestBody, urlSession: Session, evaluator: Evaluator? = nil
    ) {
        super.init(RequestDraft(head: .foundation(request), body: body), urlSession, evaluator)
    }

    /// Makes an operation that sends a request of Foundation's with a body of ours and the default session.
    public init(request: URLRequest, body: RequestBody, evaluator: Evaluator? = nil) {
        super.init(RequestDraft(head: .foundation(request), body: body), DefaultNetworkSession.standard, evaluator)
    }

    /// Makes an operation that sends a request of Foundation's, with its own body.
    public override init<Session: NetworkSession>(
        request: URLRequest, urlSession: Session, evaluator: Evaluator? = nil
    ) {
        super.init(request: request, urlSession: urlSession, evaluator: evaluator)
    }

    /// Makes an operation that sends a request of Foundation's, with its own body, with the default session.
    public override init(request: URLRequest, evaluator: Evaluator? = nil) {
        super.init(request: request, evaluator: evaluator)
    }

    /// Makes an operation that sends a request that was checked, with its own body.
    public override init<Session: NetworkSession>(
        request: NetworkRequest, urlSession: Session, evaluator: Evaluator? = nil
    ) {
        super.init(request: request, urlSession: urlSession, evaluator: evaluator)
    }

    /// Makes an operation that sends a request that was checked, with its own body, with the default session.
    public override init(request: NetworkRequest, evaluator: Evaluator? = nil) {
        super.init(request: request, evaluator: evaluator)
    }

    /// Makes an operation that sends a request that was checked, with another body than it has.
    ///
    /// It throws what making such a request throws.
    public init<Session: NetworkSession>(
        request: NetworkRequest, body: RequestBody, urlSession: Session, evaluator: Evaluator? = nil
    ) throws(NetworkError) {
        super.init(RequestDraft(head: .checked(try request.with(body))), urlSession, evaluator)
    }

    /// Makes an operation that sends a request that was checked, with another body than it has, with the default session.
    ///
    /// It throws what making such a request throws.
    public init(request: NetworkRequest, body: RequestBody, evaluator: Evaluator? = nil) throws(NetworkError) {
        super.init(
            RequestDraft(head: .checked(try request.with(body))), DefaultNetworkSession.standard, evaluator)
    }

    package override var isPlain: Bool { type(of: self) == NetworkUploadOperation<ResultType>.self }

    /// Keeps the body of the response in memory.
    open override func makeCollector(for head: ResponseHead) throws -> ResponseCollector<Data> {
        DataCollector(limit: responseRules.maximumBytesInMemory, expected: head.expectedLength)
    }
}

extension NetworkRequest {
    /// The same request with another body, whose type it takes over unless the fields name one.
    fileprivate func with(_ body: RequestBody) throws(NetworkError) -> NetworkRequest {
        try NetworkRequest(method, url: url, headers: headers, body: body, options: options)
    }
}
