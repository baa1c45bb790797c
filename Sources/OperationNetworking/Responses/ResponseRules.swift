// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The rules that determine which responses an operation accepts before it creates its result.
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
    /// The rule that determines which status codes indicate success.
    ///
    /// The default is ``StatusRule/success``, which accepts 200 to 299.
    public var statuses = StatusRule.success
    /// The rule that determines which content types the operation accepts.
    ///
    /// The default is ``ContentTypeRule/requested``, which accepts the types in the request's `Accept` header, or all
    /// types if the request has no such header.
    public var contentTypes = ContentTypeRule.requested
    /// The maximum number of bytes of a response body that the operation keeps in memory.
    ///
    /// The default is 32 MiB. If the body is larger, the operation fails with ``NetworkError/Code/bodyTooLarge``. This
    /// property does not limit bodies that the operation writes to files.
    public var maximumBytesInMemory = 32 << 20
    /// The maximum number of bytes of the response body that ``NetworkError/bodyPrefix`` contains.
    ///
    /// The default is 16 KiB.
    public var errorBodyBytes = 16 << 10
    /// A closure that creates an error from the body of a response whose status code the operation does not accept.
    ///
    /// The default is `nil`, which disables error decoding. The error that the closure returns becomes the
    /// ``NetworkError/apiError``. The closure receives at most 1 MiB of the body. The operation can call the closure
    /// on any thread.
    ///
    /// If the closure cannot create an error, it returns `nil` or throws an error, which the operation ignores.
    /// However, if the closure throws a ``NetworkError`` with the code ``NetworkError/Code/credentialRejected``, the
    /// authenticator that added the credential refreshes it. The operation then sends the request again.
    public var decodeError: (@Sendable (Data, HTTPURLResponse) throws -> (any Error)?)?

    /// Creates rules with the default values.
    public init() {}

    /// Returns a ``decodeError`` closure that decodes an error from JSON.
    ///
    /// - Parameter type: The type of the error that the closure decodes.
    public static func jsonError<Problem: Error & Decodable>(
        _ type: Problem.Type
    ) -> @Sendable (Data, HTTPURLResponse) throws -> (any Error)? {
        { data, _ in try JSONDecoder().decode(type, from: data) }
    }

    /// Returns whether the status code indicates success.
    func accepts(_ head: ResponseHead) -> Bool { statuses.accepts(head.status) }

    /// Checks a response whose body is complete.
    ///
    /// - Parameters:
    ///   - isEmpty: Whether the body is empty, so that it has no content whose type could be wrong.
    ///   - makeResponse: A closure that returns the response in Foundation's form, which only an error decoder needs.
    func check(
        _ answer: ReceivedResponse, isEmpty: Bool, _ makeResponse: () -> HTTPURLResponse?
    ) throws(NetworkError) {
        guard accepts(answer.head) else {
            let response = decodeError == nil ? nil : makeResponse()
            throw statusError(answer.head, response, (answer.collector as? ErrorBodyCollector)?.body)
        }
        if !isEmpty { try checkType(of: answer.head, to: answer.request) }
    }

    /// Checks the content type of a successful response.
    func checkType(of head: ResponseHead, to request: NetworkRequest) throws(NetworkError) {
        guard head.mayHaveBody(of: request) else { return }
        let type = head.headers["Content-Type"]
        guard contentTypes.accepts(type, requested: request.headers.values("Accept")) else {
            throw NetworkError(
                code: .unacceptableContentType, phase: .evaluating,
                message: "The response has the content type \(type?.quoted() ?? "(none)"), which is not accepted. "
                    + "Check the URL, or change responseRules.contentTypes.")
        }
    }

    /// Returns the error for an unsuccessful response, with the part of its body that was received.
    func statusError(_ head: ResponseHead, _ response: HTTPURLResponse?, _ body: Data?) -> NetworkError {
        let words = HTTPURLResponse.localizedString(forStatusCode: head.status)
        var error = NetworkError(
            code: .unacceptableStatus, phase: .evaluating, message: "The server answered \(head.status) (\(words)).")
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
    var keptErrorBytes: Int { decodeError == nil ? errorBodyBytes : max(errorBodyBytes, ErrorBodyCollector.readLimit) }
}

extension ReceivedResponse {
    var mayHaveBody: Bool { head.mayHaveBody(of: request) }
}

extension ResponseHead {
    fileprivate func mayHaveBody(of request: NetworkRequest) -> Bool {
        status != 205 && Self.mayHaveBody(status: status, method: request.method)
    }
}

/// A rule that determines which response status codes indicate success.
public struct StatusRule: Sendable {
    let accepts: @Sendable (Int) -> Bool

    /// Creates a rule that calls a closure to check a status code.
    ///
    /// - Parameter accepts: A closure that returns whether a status code indicates success. The operation can call the
    ///   closure on one of the session's threads, so the closure must not block.
    public init(_ accepts: @escaping @Sendable (Int) -> Bool) {
        self.accepts = accepts
    }

    /// The default rule, which accepts the status codes 200 to 299.
    public static let success = StatusRule { (200...299).contains($0) }

    /// A rule that accepts all status codes, so that the evaluator can check them.
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

/// A rule that determines which content types of response bodies an operation accepts.
///
/// Every rule accepts a response without a `Content-Type` header. An operation that keeps the body in memory does not
/// check the content type of an empty body.
public struct ContentTypeRule: Sendable, Hashable {
    enum Kind: Hashable {
        case any
        case requested
        case only([String])
    }

    let kind: Kind

    /// The default rule, which accepts the content types in the `Accept` header of the request.
    ///
    /// If the request has no `Accept` header, the rule accepts all content types.
    public static let requested = ContentTypeRule(kind: .requested)

    /// A rule that accepts all content types.
    public static let any = ContentTypeRule(kind: .any)

    /// Returns a rule that accepts only the given content types, such as `application/json` or `image/*`.
    ///
    /// - Parameter types: The media types, whose parameters the rule ignores. A type that ends with `/*` accepts all of
    ///   its subtypes. An empty list accepts all types.
    public static func only(_ types: String...) -> ContentTypeRule { ContentTypeRule(kind: .only(types)) }

    /// A rule that accepts `application/json` and all content types with the suffix `+json`, such as
    /// `application/problem+json`.
    public static let json = ContentTypeRule(kind: .only(["application/json", "*+json"]))

    func accepts(_ type: String?, requested: [String]) -> Bool {
        switch kind {
        case .any: return true
        case .requested where requested.isEmpty: return true
        case .requested, .only: break
        }
        // A body without a content type cannot be rejected because of its type.
        guard let type = type.map(Self.bare), !type.isEmpty else { return true }
        guard case .only(let types) = kind else {
            // A list of types is not compared as a whole.
            if !type.utf8.contains(UInt8(ascii: ",")), requested.contains(where: { $0 == "*/*" || $0 == type }) {
                return true
            }
            let wanted = requested.flatMap { $0.split(separator: ",").map(String.init) }
            return wanted.isEmpty || wanted.contains { Self.matches(type, Self.bare($0)) }
        }
        return types.isEmpty || types.contains { Self.matches(type, Self.bare($0)) }
    }

    /// Returns the type in lowercase, without parameters and spaces.
    private static func bare(_ type: String) -> String {
        // Most types are already in this form.
        if type.utf8.allSatisfy({ (0x61...0x7A).contains($0) || $0 == UInt8(ascii: "/") }) { return type }
        return (type.split(separator: ";", maxSplits: 1).first.map(String.init) ?? "").trimmedBlanks.lowercased()
    }

    private static func matches(_ type: String, _ pattern: String) -> Bool {
        if pattern == "*/*" || pattern == "*" || pattern == type { return true }
        if pattern.hasPrefix("*+") { return type.hasSuffix(pattern.dropFirst()) }
        return pattern.hasSuffix("/*") && type.hasPrefix(pattern.dropLast())
    }
}
