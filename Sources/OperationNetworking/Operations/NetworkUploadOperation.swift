// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An operation that sends a body, keeps the response in memory and creates its result from the response.
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
/// A file is read in parts while it is sent, and is never in memory as a whole.
open class NetworkUploadOperation<ResultType: Sendable>: NetworkOperation<Data, ResultType>, @unchecked Sendable {
    // Sendable: it adds no state.

    /// Creates an operation that sends a body to a URL.
    ///
    /// - Parameters:
    ///   - url: The URL of the request.
    ///   - method: The method of the request. The default is `POST`.
    ///   - body: The body to send.
    ///   - urlSession: Any ``NetworkSession``, such as `.shared` or a `URLSession`. The default is the default
    ///     session of the platform: see ``DefaultNetworkSession``.
    ///   - evaluator: A closure that creates the result, on a separate thread. The default is `nil`: see the section
    ///     "Without an evaluator" of ``NetworkOperation``.
    public init(
        url: URL, method: String = "POST", body: RequestBody,
        urlSession: any NetworkSession = DefaultNetworkSession.standard, evaluator: Evaluator? = nil
    ) {
        super.init(RequestDraft(head: .url(url), method: method, body: body), urlSession, evaluator)
    }

    /// Creates an operation that sends a body to a URL, with an evaluator of one parameter.
    public init(
        url: URL, method: String = "POST", body: RequestBody,
        urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: @escaping @Sendable (NetworkResponse<Data>) throws -> ResultType
    ) {
        super.init(RequestDraft(head: .url(url), method: method, body: body), urlSession, nil, evaluator)
    }

    /// Creates an operation that sends a `URLRequest`, with its own body or with another one.
    ///
    /// The default for `body` is `.none`, which sends the body that `request` contains.
    public init(
        request: URLRequest, body: RequestBody = .none,
        urlSession: any NetworkSession = DefaultNetworkSession.standard, evaluator: Evaluator? = nil
    ) {
        super.init(RequestDraft(head: .foundation(request), body: body), urlSession, evaluator)
    }

    /// Creates an operation that sends a `URLRequest`, with an evaluator of one parameter.
    public init(
        request: URLRequest, body: RequestBody = .none,
        urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: @escaping @Sendable (NetworkResponse<Data>) throws -> ResultType
    ) {
        super.init(RequestDraft(head: .foundation(request), body: body), urlSession, nil, evaluator)
    }

    /// Creates an operation that sends a ``NetworkRequest``, with its own body or with another one.
    ///
    /// The default for `body` is `.none`, which sends the body that `request` contains.
    public init(
        request: NetworkRequest, body: RequestBody = .none,
        urlSession: any NetworkSession = DefaultNetworkSession.standard, evaluator: Evaluator? = nil
    ) {
        super.init(RequestDraft(head: .checked(request), body: body), urlSession, evaluator)
    }

    /// Creates an operation that sends a ``NetworkRequest``, with an evaluator of one parameter.
    public init(
        request: NetworkRequest, body: RequestBody = .none,
        urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: @escaping @Sendable (NetworkResponse<Data>) throws -> ResultType
    ) {
        super.init(RequestDraft(head: .checked(request), body: body), urlSession, nil, evaluator)
    }

    /// Creates an operation without a request, for a subclass that overrides ``NetworkOperation/makeRequest()``.
    public override init(
        urlSession: any NetworkSession = DefaultNetworkSession.standard, evaluator: Evaluator? = nil
    ) {
        super.init(urlSession: urlSession, evaluator: evaluator)
    }

    /// Creates an operation without a request and with an evaluator of one parameter, for a subclass that overrides
    /// ``NetworkOperation/makeRequest()``.
    public override init(
        urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: @escaping @Sendable (NetworkResponse<Data>) throws -> ResultType
    ) {
        super.init(urlSession: urlSession, evaluator: evaluator)
    }

    package override var isPlain: Bool { type(of: self) == NetworkUploadOperation<ResultType>.self }

    /// Returns a collector that keeps the body of the response in memory.
    open override func makeCollector(for head: ResponseHead) throws -> ResponseCollector<Data> {
        DataCollector(limit: responseRules.maximumBytesInMemory, expected: head.expectedLength)
    }
}
