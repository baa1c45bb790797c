// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A complete response, which consists of a body, a status and headers.
///
/// An evaluator or a validation rule with one parameter receives a value of this type, so your code does not need
/// `HTTPURLResponse`, which on Linux belongs to `FoundationNetworking`:
///
/// ```swift
/// func etag(at url: URL) -> NetworkDataOperation<String> {
///     NetworkDataOperation(url: url) { response in
///         response.headers["ETag"] ?? "none, \(response.body.count) bytes"
///     }
/// }
/// ```
public struct NetworkResponse<Body> {
    /// The body of the response, such as `Data` or the `URL` of a file.
    public let body: Body
    /// The status and the headers of the response.
    public let head: ResponseHead

    /// Creates a response from a body, a status and headers, for testing an evaluator.
    ///
    /// - Parameters:
    ///   - body: The body of the response, such as `Data` or the URL of a file.
    ///   - head: The status and the headers of the response.
    public init(body: Body, head: ResponseHead) {
        self.body = body
        self.head = head
    }

    /// The status code of the response, such as 200.
    public var status: Int { head.status }

    /// The headers of the response.
    public var headers: HeaderFields { head.headers }
}

extension NetworkResponse: Sendable where Body: Sendable {}

/// A response whose transfer is complete.
package struct ReceivedResponse: Sendable {
    package let request: NetworkRequest
    package let head: ResponseHead
    package let collector: any AnyResponseCollector
}
