// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A complete response: its body and its head.
///
/// Evaluators and rules with one parameter get it. They need no `import FoundationNetworking`:
///
/// ```swift
/// func etag(at url: URL) -> NetworkDataOperation<String> {
///     NetworkDataOperation(url: url) { response in
///         response.headers["ETag"] ?? "none, \(response.body.count) bytes"
///     }
/// }
/// ```
public struct NetworkResponse<Body> {
    /// The body, in the form in which the operation's task gives it: `Data`, or the `URL` of a file.
    public let body: Body
    /// The status and the header fields.
    public let head: ResponseHead

    /// Creates a response, for tests of an evaluator.
    public init(body: Body, head: ResponseHead) {
        self.body = body
        self.head = head
    }

    /// The status, such as 200.
    public var status: Int { head.status }

    /// The header fields.
    public var headers: HeaderFields { head.headers }
}

extension NetworkResponse: Sendable where Body: Sendable {}
