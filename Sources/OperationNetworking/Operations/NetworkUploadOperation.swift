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

    /// Creates an operation that sends a body.
    ///
    /// - Parameters:
    ///   - url: Where to.
    ///   - method: By which method.
    ///   - body: What to send.
    ///   - urlSession: The session: any ``NetworkSession``, such as `.shared` or a `URLSession`. The default is the default
    ///     session of the platform: see ``DefaultNetworkSession``.
    ///   - evaluator: Makes the result of the response. The default is `nil`: see the section "Without an evaluator" of
    ///     ``NetworkOperation``.
    public init(
        url: URL, method: String = "POST", body: RequestBody,
        urlSession: any NetworkSession = DefaultNetworkSession.standard, evaluator: Evaluator? = nil
    ) {
        super.init(RequestDraft(head: .url(url), method: method, body: body), urlSession, evaluator)
    }

    /// Creates an operation that sends a body, with an evaluator of one parameter.
    public init(
        url: URL, method: String = "POST", body: RequestBody,
        urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: @escaping @Sendable (NetworkResponse<Data>) throws -> ResultType
    ) {
        super.init(RequestDraft(head: .url(url), method: method, body: body), urlSession, nil, evaluator)
    }

    /// Creates an operation that sends a request of Foundation's, with another body or with its own.
    ///
    /// The default body is `.none`, which sends the body of the request.
    public init(
        request: URLRequest, body: RequestBody = .none,
        urlSession: any NetworkSession = DefaultNetworkSession.standard, evaluator: Evaluator? = nil
    ) {
        super.init(RequestDraft(head: .foundation(request), body: body), urlSession, evaluator)
    }

    /// Creates an operation that sends a request of Foundation's, with an evaluator of one parameter.
    public init(
        request: URLRequest, body: RequestBody = .none,
        urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: @escaping @Sendable (NetworkResponse<Data>) throws -> ResultType
    ) {
        super.init(RequestDraft(head: .foundation(request), body: body), urlSession, nil, evaluator)
    }

    /// Creates an operation that sends a request that was checked, with another body or with its own.
    ///
    /// The default body is `.none`, which sends the body of the request.
    public init(
        request: NetworkRequest, body: RequestBody = .none,
        urlSession: any NetworkSession = DefaultNetworkSession.standard, evaluator: Evaluator? = nil
    ) {
        super.init(RequestDraft(head: .checked(request), body: body), urlSession, evaluator)
    }

    /// Creates an operation that sends a request that was checked, with an evaluator of one parameter.
    public init(
        request: NetworkRequest, body: RequestBody = .none,
        urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: @escaping @Sendable (NetworkResponse<Data>) throws -> ResultType
    ) {
        super.init(RequestDraft(head: .checked(request), body: body), urlSession, nil, evaluator)
    }

    /// Creates an operation of a subclass that overrides ``NetworkOperation/makeRequest()``.
    public override init(
        urlSession: any NetworkSession = DefaultNetworkSession.standard, evaluator: Evaluator? = nil
    ) {
        super.init(urlSession: urlSession, evaluator: evaluator)
    }

    /// Creates an operation of a subclass that overrides ``NetworkOperation/makeRequest()``, with an evaluator of one parameter.
    public override init(
        urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: @escaping @Sendable (NetworkResponse<Data>) throws -> ResultType
    ) {
        super.init(urlSession: urlSession, evaluator: evaluator)
    }

    package override var isPlain: Bool { type(of: self) == NetworkUploadOperation<ResultType>.self }

    /// Keeps the body of the response in memory.
    open override func makeCollector(for head: ResponseHead) throws -> ResponseCollector<Data> {
        DataCollector(limit: responseRules.maximumBytesInMemory, expected: head.expectedLength)
    }
}
