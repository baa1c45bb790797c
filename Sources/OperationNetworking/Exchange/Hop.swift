// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// One request of an exchange, as the user or a redirect means it: what the jar, the challenges and the cache add to it
/// comes later, and is never carried over to the next.
package struct Hop: Sendable {
    package var method: String
    package var address: WebAddress
    package var headers: HeaderFields
    package var body: RequestBody
    package var options: TransferOptions
    /// The user's own request, which need not be checked again as long as nothing is changed in it.
    private var original: NetworkRequest?

    package init(
        method: String, address: WebAddress, headers: HeaderFields = [:], body: RequestBody = .none,
        options: TransferOptions = .standard
    ) {
        self.method = method
        self.address = address
        self.headers = headers
        self.body = body
        self.options = options
    }

    /// What a request asks for; nil for an address that cannot be taken apart.
    package init?(_ request: NetworkRequest) {
        guard let address = WebAddress(request.url) else { return nil }
        self.init(
            method: request.method, address: address, headers: request.headers, body: request.body,
            options: request.options)
        original = request
    }

    /// The hop to another address.
    package func moved(to address: WebAddress) -> Hop {
        Hop(method: method, address: address, headers: headers, body: body, options: options)
    }

    /// The request with these header fields, checked like any other.
    package func request(headers: HeaderFields) throws(NetworkError) -> NetworkRequest {
        if let original, original.options == options, original.headers == headers { return original }
        guard let url = address.url else {
            throw NetworkError(
                code: .invalidURL, phase: .checking, message: "The address \(address.origin) cannot be made a URL.")
        }
        return try NetworkRequest(method, url: url, headers: headers, body: body, options: options)
    }
}
