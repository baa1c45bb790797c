// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The operation of one endpoint: of a value, or of a subclass that says what it asks for.
///
/// One class for the service and one small class per endpoint:
///
/// ```swift
/// class ShopOperation<ResultType: Sendable>: EndpointOperation<ResultType>, @unchecked Sendable {
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
/// The base does the rest: address, fields, validation, decoding, log. Each attempt asks for both anew; validation, log and
/// callback queue are taken from the base once, when the operation is made.
open class EndpointOperation<ResultType: Sendable>: NetworkDataOperation<ResultType>, @unchecked Sendable {
    // Sendable: it adds nothing that changes.

    private let given: (endpoint: Endpoint<ResultType>, base: NetworkBase)?

    /// Makes the operation of an endpoint.
    public init(_ endpoint: Endpoint<ResultType>, at base: NetworkBase) {
        given = (endpoint, base)
        super.init(RequestDraft(head: .none), base.session, nil)
        take(base)
    }

    /// Makes the operation of a subclass that overrides ``endpoint`` and ``base``.
    public init() {
        given = nil
        super.init(RequestDraft(head: .none), DefaultNetworkSession.standard, nil)
        take(base)
    }

    /// The service: override it in a class for all endpoints of one service.
    open var base: NetworkBase {
        guard let given else {
            preconditionFailure("\(type(of: self)) must override base, or be made with one.")
        }
        return given.base
    }

    /// What is asked for: override it in a class for one endpoint.
    open var endpoint: Endpoint<ResultType> {
        guard let given else {
            preconditionFailure("\(type(of: self)) must override endpoint, or be made with one.")
        }
        return given.endpoint
    }

    /// Makes the request of the endpoint at its base.
    open override func makeRequest() throws -> NetworkRequest {
        let base = base
        // A hook of a subclass may send the request elsewhere.
        if !isPlain { networkAttempts.keepCredentials(at: RequestOrigin(of: base.url)) }
        return try endpoint.request(at: base, for: networkAttempts)
    }

    override var serviceOfHooks: OperationKnobs.Service? { base.service }

    override var inheritedTransferOptions: TransferOptions { base.options }

    override var operationSession: any NetworkSession { base.session }

    package override var isPlain: Bool { type(of: self) == EndpointOperation<ResultType>.self }

    override var makesResultByEvaluator: Bool { false }

    /// Makes the result as the endpoint says, or by ``evaluate(result:response:)`` in a subclass that overrides that.
    open override func evaluate(result: Data, head: ResponseHead) throws -> ResultType {
        guard isPlain, let given, let read = given.endpoint.read else {
            return try evaluate(result: result, response: networkAttempts.needResponse(of: head))
        }
        if result.isEmpty, let emptyResult = given.endpoint.emptyResult { return emptyResult() }
        return try read(result, head, given.base)
    }

    /// Makes the result as the endpoint says.
    open override func evaluate(result: Data, response: HTTPURLResponse) throws -> ResultType {
        let endpoint = endpoint
        if result.isEmpty, let emptyResult = endpoint.emptyResult { return emptyResult() }
        return try endpoint.decode(result, response, base)
    }
}
