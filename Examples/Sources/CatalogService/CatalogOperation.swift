// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

/// The base class of all requests to the catalog, except downloads.
///
/// Each subclass must override ``path``. By default, the request is a GET request without a query or a body.
open class CatalogOperation<ResultType: Sendable>: NetworkDataOperation<ResultType>, @unchecked Sendable {
    // Sendable: the class adds only a constant.

    public let catalog: Catalog

    public init(_ catalog: Catalog) {
        self.catalog = catalog
        super.init()
        using(catalog.base)
        validate { try catalog.check($0.head, $0.body) }
    }

    open var method: String { "GET" }

    /// The path that the operation appends to the URL of the service, which each subclass must override.
    open var path: String {
        get throws { throw CatalogProblem(error: "\(type(of: self)) must override path.") }
    }

    open var query: [String: String] { [:] }

    open func makeBody() throws -> RequestBody { .none }

    /// Creates the result from a response.
    ///
    /// The default implementation decodes the body from JSON, or ignores the body if the result is `NoContent`.
    open func read(_ response: NetworkResponse<Data>) throws -> ResultType {
        try super.evaluate(result: response.body, head: response.head)
    }

    public final override func makeRequest() throws -> NetworkRequest {
        try catalog.request(path, method: method, query: query, body: makeBody())
    }

    public final override func evaluate(result: Data, head: ResponseHead) throws -> ResultType {
        try read(NetworkResponse(body: result, head: head))
    }
}
