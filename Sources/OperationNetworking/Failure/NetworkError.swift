// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Why a request failed: what went wrong and in which phase, with which request, and what to do about it.
///
/// ```swift
/// if let url = URL(string: "https://example.com") {
///     do {
///         _ = try NetworkRequest(url: url, headers: ["X-Token": "one\ntwo"])
///     } catch where error.code == .invalidHeaderValue {
///         print(error.message)
///     }
/// }
/// ```
///
/// The text never contains user, password, query values, header values but the type of a response, or anything of a body
/// but the names that lead to where it is not as expected.
public struct NetworkError: Error, Sendable, Hashable {
    /// The kind of the failure.
    public let code: Code
    /// How far the request had come.
    public let phase: Phase
    /// What happened, and what to do about it, as a sentence to show to a person.
    public let message: String
    /// Which request it was.
    public var request: RequestSummary?
    /// The status of the response, if there was one.
    public var status: Int?
    /// What the layer beneath said.
    public var underlying: Underlying?
    /// Whether the server cannot have acted upon the request, because none of it was sent.
    ///
    /// If so, anything may be sent again.
    public var isUnsent: Bool
    var details: Details?

    /// Makes an error.
    ///
    /// - Parameters:
    ///   - code: The kind of the failure.
    ///   - phase: How far the request had come. Up to ``Phase/connecting`` it counts as unsent.
    ///   - message: What happened, and what to do about it.
    ///   - request: Which request it was.
    ///   - underlying: What the layer beneath said.
    public init(
        code: Code, phase: Phase, message: String, request: RequestSummary? = nil, underlying: Underlying? = nil
    ) {
        self.code = code
        self.phase = phase
        self.message = message
        self.request = request
        self.underlying = underlying
        isUnsent = phase == .checking || phase == .waiting || phase == .connecting
    }
}

extension NetworkError: CustomStringConvertible {
    /// One line for a log: the kind, the phase, the request.
    public var description: String {
        let place = request.map { " \($0)" } ?? ""
        let answer = status.map { " (status \($0))" } ?? ""
        let cause = underlying.map { " [\($0)]" } ?? ""
        let end = retryEnd.map { " (attempts: \(attempts.count), \($0))" } ?? ""
        return "[\(code) while \(phase)]\(place)\(answer): \(message)\(cause)\(end)"
    }
}

extension NetworkError: LocalizedError {
    /// The sentence to show to a person.
    public var errorDescription: String? { message }
}
