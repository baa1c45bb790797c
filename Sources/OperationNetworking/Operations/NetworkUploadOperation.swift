// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An operation that sends a body, keeps the response body in memory and creates its result from the response.
///
/// ```swift
/// func upload(_ file: URL, to url: URL) throws -> NetworkUploadOperation<Int> {
///     let operation = NetworkUploadOperation(
///         url: url, body: .file(try FileRegion(file))
///     ) { _, response in
///         response.statusCode
///     }
///     operation.uploadProgressHandler = { print($0) }
///     return operation
/// }
/// ```
///
/// If the request body is a file, the session reads and sends the file in chunks, so the whole file is never in memory.
open class NetworkUploadOperation<ResultType: Sendable>: NetworkOperation<Data, ResultType>, @unchecked Sendable {
    // Sendable: it adds no state.

    /// Creates an operation that sends a body to a URL, with an evaluator that receives an `HTTPURLResponse`.
    ///
    /// - Parameters:
    ///   - url: The URL of the request.
    ///   - method: The HTTP method of the request. The default is `POST`.
    ///   - body: The body to send.
    ///   - urlSession: The session that sends the request, such as `.shared` or a `URLSession`. The default is
    ///     ``DefaultNetworkSession/standard``.
    ///   - evaluator: A closure that creates the result and never runs on a session's thread. The default is `nil`. For
    ///     the result of an operation without an evaluator, see ``NetworkOperation``.
    public init(
        url: URL, method: String = "POST", body: RequestBody,
        urlSession: any NetworkSession = DefaultNetworkSession.standard, evaluator: Evaluator? = nil
    ) {
        super.init(RequestDraft(head: .url(url), method: method, body: body), urlSession, evaluator)
    }

    /// Creates an operation that sends a body to a URL, with an evaluator that receives a ``NetworkResponse``.
    ///
    /// - Parameters:
    ///   - url: The URL of the request.
    ///   - method: The HTTP method of the request. The default is `POST`.
    ///   - body: The body to send.
    ///   - urlSession: The session that sends the request, such as `.shared` or a `URLSession`. The default is
    ///     ``DefaultNetworkSession/standard``.
    ///   - evaluator: A closure that creates the result and never runs on a session's thread. If the closure throws an
    ///     error, the attempt fails.
    public init(
        url: URL, method: String = "POST", body: RequestBody,
        urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: @escaping @Sendable (NetworkResponse<Data>) throws -> ResultType
    ) {
        super.init(RequestDraft(head: .url(url), method: method, body: body), urlSession, nil, evaluator)
    }

    /// Creates an operation that sends a `URLRequest` and an optional body, with an evaluator that receives an
    /// `HTTPURLResponse`.
    ///
    /// - Parameters:
    ///   - request: The request to send. If the request is not valid, the operation fails.
    ///   - body: The body to send. The default is ``RequestBody/none``, which sends the body of `request`.
    ///   - urlSession: The session that sends the request, such as `.shared` or a `URLSession`. The default is
    ///     ``DefaultNetworkSession/standard``.
    ///   - evaluator: A closure that creates the result and never runs on a session's thread. The default is `nil`. For
    ///     the result of an operation without an evaluator, see ``NetworkOperation``.
    public init(
        request: URLRequest, body: RequestBody = .none,
        urlSession: any NetworkSession = DefaultNetworkSession.standard, evaluator: Evaluator? = nil
    ) {
        super.init(RequestDraft(head: .foundation(request), body: body), urlSession, evaluator)
    }

    /// Creates an operation that sends a `URLRequest` and an optional body, with an evaluator that receives a
    /// ``NetworkResponse``.
    ///
    /// - Parameters:
    ///   - request: The request to send. If the request is not valid, the operation fails.
    ///   - body: The body to send. The default is ``RequestBody/none``, which sends the body of `request`.
    ///   - urlSession: The session that sends the request, such as `.shared` or a `URLSession`. The default is
    ///     ``DefaultNetworkSession/standard``.
    ///   - evaluator: A closure that creates the result and never runs on a session's thread. If the closure throws an
    ///     error, the attempt fails.
    public init(
        request: URLRequest, body: RequestBody = .none,
        urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: @escaping @Sendable (NetworkResponse<Data>) throws -> ResultType
    ) {
        super.init(RequestDraft(head: .foundation(request), body: body), urlSession, nil, evaluator)
    }

    /// Creates an operation that sends a ``NetworkRequest`` and an optional body, with an evaluator that receives an
    /// `HTTPURLResponse`.
    ///
    /// - Parameters:
    ///   - request: The request to send.
    ///   - body: The body to send. The default is ``RequestBody/none``, which sends the body of `request`.
    ///   - urlSession: The session that sends the request, such as `.shared` or a `URLSession`. The default is
    ///     ``DefaultNetworkSession/standard``.
    ///   - evaluator: A closure that creates the result and never runs on a session's thread. The default is `nil`. For
    ///     the result of an operation without an evaluator, see ``NetworkOperation``.
    public init(
        request: NetworkRequest, body: RequestBody = .none,
        urlSession: any NetworkSession = DefaultNetworkSession.standard, evaluator: Evaluator? = nil
    ) {
        super.init(RequestDraft(head: .checked(request), body: body), urlSession, evaluator)
    }

    /// Creates an operation that sends a ``NetworkRequest`` and an optional body, with an evaluator that receives a
    /// ``NetworkResponse``.
    ///
    /// - Parameters:
    ///   - request: The request to send.
    ///   - body: The body to send. The default is ``RequestBody/none``, which sends the body of `request`.
    ///   - urlSession: The session that sends the request, such as `.shared` or a `URLSession`. The default is
    ///     ``DefaultNetworkSession/standard``.
    ///   - evaluator: A closure that creates the result and never runs on a session's thread. If the closure throws an
    ///     error, the attempt fails.
    public init(
        request: NetworkRequest, body: RequestBody = .none,
        urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: @escaping @Sendable (NetworkResponse<Data>) throws -> ResultType
    ) {
        super.init(RequestDraft(head: .checked(request), body: body), urlSession, nil, evaluator)
    }

    /// Creates an operation that gets its request from ``NetworkOperation/makeRequest()`` and can evaluate the response
    /// with a closure that receives an `HTTPURLResponse`.
    ///
    /// Call this initializer in a subclass that overrides ``NetworkOperation/makeRequest()``.
    ///
    /// - Parameters:
    ///   - urlSession: The session that sends the request, such as `.shared` or a `URLSession`. The default is
    ///     ``DefaultNetworkSession/standard``.
    ///   - evaluator: A closure that creates the result and never runs on a session's thread. The default is `nil`. For
    ///     the result of an operation without an evaluator, see ``NetworkOperation``.
    public override init(
        urlSession: any NetworkSession = DefaultNetworkSession.standard, evaluator: Evaluator? = nil
    ) {
        super.init(urlSession: urlSession, evaluator: evaluator)
    }

    /// Creates an operation that gets its request from ``NetworkOperation/makeRequest()`` and evaluates the response
    /// with a closure that receives a ``NetworkResponse``.
    ///
    /// Call this initializer in a subclass that overrides ``NetworkOperation/makeRequest()``.
    ///
    /// - Parameters:
    ///   - urlSession: The session that sends the request, such as `.shared` or a `URLSession`. The default is
    ///     ``DefaultNetworkSession/standard``.
    ///   - evaluator: A closure that creates the result and never runs on a session's thread. If the closure throws an
    ///     error, the attempt fails.
    public override init(
        urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: @escaping @Sendable (NetworkResponse<Data>) throws -> ResultType
    ) {
        super.init(urlSession: urlSession, evaluator: evaluator)
    }

    package override var isOfOwnClass: Bool { type(of: self) == NetworkUploadOperation<ResultType>.self }

    /// Returns a collector that keeps the response body in memory.
    ///
    /// - Parameter head: The status and the headers of the response.
    /// - Throws: Any error that an override throws. The attempt then fails.
    open override func makeCollector(for head: ResponseHead) throws -> ResponseCollector<Data> {
        DataCollector(limit: responseRules.maximumBytesInMemory, expected: head.expectedLength)
    }
}
