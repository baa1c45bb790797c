// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A summary of a request for logs and error messages, without secrets.
public struct RequestSummary: Sendable, Hashable, CustomStringConvertible {
    /// The HTTP method of the request.
    public let method: String
    /// The URL of the request, without secrets.
    ///
    /// The URL does not contain a user name, a password or a fragment. Three asterisks replace each value in the query.
    /// In the path, asterisks replace JSON web tokens, the keys of well-known services, and values of parameters such
    /// as `;jsessionid=…`.
    public let url: String

    /// Creates a summary from the method and the URL of a request.
    ///
    /// - Parameters:
    ///   - method: The HTTP method of the request.
    ///   - url: The URL of the request, which can contain secrets. The initializer removes the secrets.
    public init(method: String, url: URL) {
        self.init(method: method, url: url, .secrets)
    }

    init(method: String, url: URL, _ redaction: LogRedaction) {
        self.method = method
        self.url = redaction.keepsSecrets ? url.absoluteString : redaction.withoutSecrets(in: url)
    }

    /// Creates a copy of a summary, in which the redaction also hides the secrets of the path.
    package init(_ summary: RequestSummary, _ redaction: LogRedaction) {
        method = summary.method
        let path = summary.url.prefix { $0 != "?" }
        url = redaction.withoutSecrets(inPath: String(path)) + summary.url[path.endIndex...]
    }

    /// The method and the URL of the request, separated by a space.
    public var description: String { "\(method) \(url)" }
}
