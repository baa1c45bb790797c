// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An operation that sends an endpoint's request.
///
/// Pass the endpoint to the initializer, or define the endpoint in a subclass.
///
/// To use subclasses, define one class for the service and one small class for each endpoint:
///
/// ```swift
/// class ShopOperation<ResultType: Sendable>: EndpointOperation<ResultType>,
///     @unchecked Sendable
/// {
///     override var base: NetworkBase {
///         var base = NetworkBase(URL(filePath: "/"))
///         base.headers["X-Client"] = "sample"
///         return base
///     }
/// }
///
/// struct Album: Decodable, Sendable { let title: String }
///
/// final class AlbumList: ShopOperation<[Album]>, @unchecked Sendable {
///     let page: Int
///     init(page: Int) {
///         self.page = page
///         super.init()
///     }
///
///     override var endpoint: Endpoint<[Album]> { .get("albums", ["page": page]) }
/// }
/// ```
///
/// The base provides the settings that all operations of the service share, such as the URL and the headers. For each
/// attempt, the operation reads ``base`` and ``endpoint`` again to create the request. The operation copies other
/// settings, such as the response rules, the retry behavior and the log, only once, during initialization.
///
/// Guide: `Docs/Guides/NetworkOperations.md`
open class EndpointOperation<ResultType: Sendable>: NetworkDataOperation<ResultType>, @unchecked Sendable {
    // Sendable: the class adds no mutable state.

    private let givenEndpoint: Endpoint<ResultType>?
    private let givenBase: NetworkBase?

    /// Creates an operation that sends an endpoint's request to a service.
    ///
    /// - Parameters:
    ///   - endpoint: The request to send, and the closure that decodes the result.
    ///   - base: The settings of the service. The operation uses the session of the base.
    public init(_ endpoint: Endpoint<ResultType>, at base: NetworkBase) {
        (givenEndpoint, givenBase) = (endpoint, base)
        super.init(RequestDraft(head: .none), base.session, nil)
        take(base)
    }

    /// Creates an operation whose class overrides ``endpoint`` and ``base``.
    public init() {
        (givenEndpoint, givenBase) = (nil, nil)
        super.init(RequestDraft(head: .none), DefaultNetworkSession.standard, nil)
        take(base)
    }

    /// The base that contains the settings of the service.
    ///
    /// Override this property in the common superclass of all operations of a service. If a class that you create with
    /// ``init()`` does not override this property, the program stops.
    open var base: NetworkBase {
        guard let givenBase else {
            preconditionFailure("\(type(of: self)) must override base, or be created with a base.")
        }
        return givenBase
    }

    /// The endpoint whose request the operation sends.
    ///
    /// Override this property in each subclass that represents an endpoint. If a class that you create with ``init()``
    /// does not override this property, the program stops.
    open var endpoint: Endpoint<ResultType> {
        guard let givenEndpoint else {
            preconditionFailure("\(type(of: self)) must override endpoint, or be created with an endpoint.")
        }
        return givenEndpoint
    }

    /// Creates the request from the endpoint and the base.
    ///
    /// - Throws: A ``NetworkError`` if the URL, a header or the body is not valid, or the error that
    ///   ``Endpoint/makeBody`` throws. The attempt then fails.
    open override func makeRequest() throws -> NetworkRequest { try endpoint.request(at: base) }

    override var serviceOfHooks: NetworkOperationOptions.Service? { base.service }

    override var inheritedTransferOptions: TransferOptions { base.options }

    override var operationSession: any NetworkSession { base.session }

    package override var isOfOwnClass: Bool { type(of: self) == EndpointOperation<ResultType>.self }

    package override var decodesByItself: Bool {
        guard hasNoOverrides, let endpoint = givenEndpoint else { return false }
        return endpoint.read != nil && endpoint.emptyResult == nil
    }

    override var hasBodyInMemory: Bool { givenEndpoint?.hasBodyInMemory ?? false }

    override var makesResultByEvaluator: Bool { false }

    /// Decodes the result from a response by using the endpoint or an override of ``evaluate(result:response:)``.
    ///
    /// - Parameters:
    ///   - result: The body of the response.
    ///   - head: The status and the headers of the response.
    /// - Throws: The error of the closure that decodes the result. The attempt then fails.
    open override func evaluate(result: Data, head: ResponseHead) throws -> ResultType {
        guard hasNoOverrides, let endpoint = givenEndpoint, let givenBase, let read = endpoint.read else {
            return try evaluate(result: result, response: networkAttempts.needResponse(of: head))
        }
        if result.isEmpty, let emptyResult = endpoint.emptyResult { return emptyResult() }
        return try read(result, head, givenBase)
    }

    /// Creates the result by calling the endpoint's ``Endpoint/decode`` closure or, if the body is empty, the
    /// endpoint's ``Endpoint/emptyResult`` closure, if there is one.
    ///
    /// - Parameters:
    ///   - result: The body of the response.
    ///   - response: The status and the headers of the response.
    /// - Throws: The error that ``Endpoint/decode`` throws. The attempt then fails.
    open override func evaluate(result: Data, response: HTTPURLResponse) throws -> ResultType {
        let endpoint = endpoint
        if result.isEmpty, let emptyResult = endpoint.emptyResult { return emptyResult() }
        return try endpoint.decode(result, response, base)
    }
}
