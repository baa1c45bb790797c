// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A response whose transfer is complete.
package struct Answer: Sendable {
    package let request: NetworkRequest
    package let head: ResponseHead
    package let collector: AnyResponseCollector
    let attempts: NetworkAttempts

    /// The response in Foundation's form, made when it is first asked for: most rules do without.
    var response: HTTPURLResponse? { attempts.response(of: head) }

    /// The same for those who cannot do without.
    func needResponse() throws(NetworkError) -> HTTPURLResponse {
        guard let response else {
            throw NetworkError(
                code: .invalidResponse, phase: .evaluating,
                message: "Foundation cannot represent the response. Look at its head instead, by responseHead.")
        }
        return response
    }
}
