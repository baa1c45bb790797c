// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What an operation accepts as a response before it makes a result of it.
///
/// ```swift
/// var rules = ResponseRules()
/// rules.statuses = .success(or: 404)
/// rules.contentTypes = .json
/// rules.decodeError = ResponseRules.jsonError(ShopProblem.self)
///
/// struct ShopProblem: Error, Decodable { let reason: String }
/// ```
public struct ResponseRules: Sendable {
    /// Which statuses are a success: 200 to 299.
    public var statuses = StatusRule.success
    /// Which types a body may have: those that the request accepts.
    public var contentTypes = ContentTypeRule.requested
    /// The most bytes of a body that are kept in memory: 32 MiB.
    ///
    /// Bodies that go to files know no bound.
    public var maximumBytesInMemory = 32 << 20
    /// How many bytes of the body an error carries: 16 KiB.
    public var errorBodyBytes = 16 << 10
    /// Makes an error of what a server says beside a status that is not accepted; nil, or what it throws, for none.
    ///
    /// If it throws a ``NetworkError`` with the code ``NetworkError/Code/credentialRejected``, the credential is renewed and
    /// the request is sent again, as after a 401.
    ///
    /// It gets the body, of which no more than 1 MiB is read.
    public var decodeError: (@Sendable (Data, HTTPURLResponse) throws -> (any Error)?)?

    /// Makes the rules that are stated.
    public init() {}

    /// A ``decodeError`` for servers that describe their errors in JSON.
    public static func jsonError<Problem: Error & Decodable>(
        _ type: Problem.Type
    ) -> @Sendable (Data, HTTPURLResponse) throws -> (any Error)? {
        { data, _ in try JSONDecoder().decode(type, from: data) }
    }

    /// Whether the head is that of a success.
    func accepts(_ head: ResponseHead) -> Bool { statuses.accepts(head.status) }

    /// Looks at a response whose body is there.
    func check(_ answer: Answer) throws(NetworkError) {
        guard accepts(answer.head) else {
            let response = decodeError == nil ? nil : answer.response
            throw statusError(answer.head, response, (answer.collector as? ErrorBodyCollector)?.body)
        }
        try checkType(of: answer.head, to: answer.request)
    }

    /// Looks at the type of a response that is a success.
    func checkType(of head: ResponseHead, to request: NetworkRequest) throws(NetworkError) {
        guard head.mayHaveBody(of: request) else { return }
        let type = head.headers["Content-Type"]
        guard contentTypes.accepts(type, requested: request.headers.values("Accept")) else {
            throw NetworkError(
                code: .unacceptableContentType, phase: .evaluating,
                message: "The response is of the type \(type?.quoted() ?? ""), which is none of those accepted. "
                    + "Is the address right, or does another server answer? Otherwise change rules.contentTypes.")
        }
    }

    /// The error of a response that is no success, with what it says, as far as it came.
    func statusError(_ head: ResponseHead, _ response: HTTPURLResponse?, _ body: Data?) -> NetworkError {
        var error = NetworkError(
            code: .unacceptableStatus, phase: .evaluating,
            message: "The server answered \(head.status) (\(Self.words(head))).")
        if let body {
            error.bodyPrefix = Data(body.prefix(max(errorBodyBytes, 0)))
            guard let decodeError, let response else { return error }
            do { error.apiError = try decodeError(body, response) } catch var rejection as NetworkError
                where rejection.code == .credentialRejected
            {
                rejection.bodyPrefix = rejection.bodyPrefix ?? error.bodyPrefix
                return rejection
            } catch {}
        }
        return error
    }

    /// How much is kept of the body of an answer that is an error.
    var keptErrorBytes: Int { decodeError == nil ? errorBodyBytes : max(errorBodyBytes, ErrorBodyCollector.patience) }

    private static func words(_ head: ResponseHead) -> String {
        HTTPURLResponse.localizedString(forStatusCode: head.status)
    }
}

extension Answer {
    var mayHaveBody: Bool { head.mayHaveBody(of: request) }
}

extension ResponseHead {
    fileprivate func mayHaveBody(of request: NetworkRequest) -> Bool {
        request.method != "HEAD" && status != 204 && status != 205 && status != 304
    }
}
