// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Who makes heads into responses of Foundation's.
package protocol ResponseMaker: AnyObject, Sendable {
    /// Nil if Foundation cannot represent it.
    func response(of head: ResponseHead) -> HTTPURLResponse?
}

extension ResponseMaker {
    /// The response for those who cannot do without.
    func needResponse(of head: ResponseHead) throws(NetworkError) -> HTTPURLResponse {
        guard let response = response(of: head) else {
            throw NetworkError(
                code: .invalidResponse, phase: .evaluating,
                message: "Foundation cannot represent the response. Use the form of the evaluator, the rule or the "
                    + "hook that gets the head of the response: it works with every response.")
        }
        return response
    }
}

/// A response whose transfer is complete.
package struct Answer: Sendable {
    package let request: NetworkRequest
    package let head: ResponseHead
    package let collector: AnyResponseCollector
    let maker: any ResponseMaker

    /// The response in Foundation's form, made when it is first asked for: most rules do without.
    var response: HTTPURLResponse? { maker.response(of: head) }

    /// The same for those who cannot do without.
    func needResponse() throws(NetworkError) -> HTTPURLResponse { try maker.needResponse(of: head) }
}
