// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A set of rules that determine which responses an operation accepts before it creates a result.
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
    /// The rule for the status codes that indicate success.
    ///
    /// The default accepts 200 to 299.
    public var statuses = StatusRule.success
    /// The rule for the content types of the body.
    ///
    /// The default accepts the types that the request asks for.
    public var contentTypes = ContentTypeRule.requested
    /// The maximum number of bytes of a body in memory.
    ///
    /// The default is 32 MiB. The rule does not limit bodies that are written to files.
    public var maximumBytesInMemory = 32 << 20
    /// The maximum number of bytes of the body that an error contains.
    ///
    /// The default is 16 KiB.
    public var errorBodyBytes = 16 << 10
    /// A closure that creates an error from the body of a response whose status code is not accepted.
    ///
    /// The closure returns `nil` or throws an error if it cannot create an error. An operation ignores the error that
    /// the closure throws, with one exception. If the error is a ``NetworkError`` with the code
    /// ``NetworkError/Code/credentialRejected``, the realm refreshes the credential. The operation then sends the
    /// request again, as after the status code 401.
    ///
    /// The closure receives the body, of which at most 1 MiB is read. An operation calls the closure on the thread of
    /// the evaluation. The default is `nil`, which creates no error from the body.
    public var decodeError: (@Sendable (Data, HTTPURLResponse) throws -> (any Error)?)?

    /// Creates the default rules.
    public init() {}

    /// Returns a ``decodeError`` closure for servers that describe their errors in JSON.
    ///
    /// - Parameter type: The type of the error to decode.
    public static func jsonError<Problem: Error & Decodable>(
        _ type: Problem.Type
    ) -> @Sendable (Data, HTTPURLResponse) throws -> (any Error)? {
        { data, _ in try JSONDecoder().decode(type, from: data) }
    }

    /// Returns whether the status code indicates success.
    func accepts(_ head: ResponseHead) -> Bool { statuses.accepts(head.status) }

    /// Checks a response whose body is complete.
    func check(_ answer: Answer) throws(NetworkError) {
        guard accepts(answer.head) else {
            let response = decodeError == nil ? nil : answer.response
            throw statusError(answer.head, response, (answer.collector as? ErrorBodyCollector)?.body)
        }
        try checkType(of: answer.head, to: answer.request)
    }

    /// Checks the content type of a successful response.
    func checkType(of head: ResponseHead, to request: NetworkRequest) throws(NetworkError) {
        guard head.mayHaveBody(of: request) else { return }
        let type = head.headers["Content-Type"]
        guard contentTypes.accepts(type, requested: request.headers.values("Accept")) else {
            throw NetworkError(
                code: .unacceptableContentType, phase: .evaluating,
                message: "The response has the content type \(type?.quoted() ?? "(none)"), which is not accepted. "
                    + "Check the URL, or change rules.contentTypes.")
        }
    }

    /// Returns the error for an unsuccessful response, with the part of its body that was received.
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

    /// The number of bytes to keep of the body of an error response.
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

/// A rule that determines which status codes indicate success.
public struct StatusRule: Sendable {
    let accepts: @Sendable (Int) -> Bool

    /// Creates a rule from a closure.
    ///
    /// - Parameter accepts: A closure that returns whether a status code indicates success. It can be called on the
    ///   thread of a session and must not block.
    public init(_ accepts: @escaping @Sendable (Int) -> Bool) {
        self.accepts = accepts
    }

    /// A rule that accepts the status codes 200 to 299, which is the default.
    public static let success = StatusRule { (200...299).contains($0) }

    /// A rule that accepts every status code, so that the evaluator can check it.
    public static let any = StatusRule { _ in true }

    /// Returns a rule that accepts only the given status codes.
    public static func only(_ statuses: Int...) -> StatusRule {
        let statuses = Set(statuses)
        return StatusRule { statuses.contains($0) }
    }

    /// Returns a rule that accepts the status codes 200 to 299 and the given status codes.
    public static func success(or statuses: Int...) -> StatusRule {
        let statuses = Set(statuses)
        return StatusRule { (200...299).contains($0) || statuses.contains($0) }
    }
}

/// A rule that determines which content types of a body are accepted.
public struct ContentTypeRule: Sendable, Hashable {
    enum Kind: Hashable {
        case any
        case requested
        case only([String])
    }

    let kind: Kind

    /// A rule that accepts the types in the `Accept` header of the request, or all types if the request has no such
    /// header.
    ///
    /// This rule is the default.
    public static let requested = ContentTypeRule(kind: .requested)

    /// A rule that accepts all types.
    public static let any = ContentTypeRule(kind: .any)

    /// Returns a rule that accepts only the given types, such as `application/json` or `image/*`.
    public static func only(_ types: String...) -> ContentTypeRule { ContentTypeRule(kind: .only(types)) }

    /// A rule that accepts JSON, including other types that are JSON (`application/problem+json`).
    public static let json = ContentTypeRule(kind: .only(["application/json", "*+json"]))

    func accepts(_ type: String?, requested: [String]) -> Bool {
        let wanted: [String]
        switch kind {
        case .any: return true
        case .requested: wanted = requested.flatMap { $0.split(separator: ",").map(String.init) }
        case .only(let types): wanted = types
        }
        guard !wanted.isEmpty else { return true }
        // A body without a content type cannot be rejected because of its type.
        guard let type = type.map(Self.bare), !type.isEmpty else { return true }
        return wanted.contains { Self.matches(type, Self.bare($0)) }
    }

    /// Returns the type in lowercase, without parameters and spaces.
    private static func bare(_ type: String) -> String {
        (type.split(separator: ";", maxSplits: 1).first.map(String.init) ?? "").trimmedBlanks.lowercased()
    }

    private static func matches(_ type: String, _ pattern: String) -> Bool {
        if pattern == "*/*" || pattern == "*" || pattern == type { return true }
        if pattern.hasPrefix("*+") { return type.hasSuffix(pattern.dropFirst()) }
        return pattern.hasSuffix("/*") && type.hasPrefix(pattern.dropLast())
    }
}
