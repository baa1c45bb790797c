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
    /// In a box of its own: an error is handed on far more often than it is looked at, and mostly there is none.
    private var box: Box

    /// Makes an error.
    ///
    /// - Parameters:
    ///   - code: The kind of the failure.
    ///   - phase: How far the request had come. Up to ``Phase/connecting`` it counts as unsent.
    ///   - message: What happened, and what to do about it. Control characters and line breaks become blanks, so that
    ///     text from a server can neither control a terminal nor begin a line of a log.
    ///   - request: Which request it was.
    ///   - underlying: What the layer beneath said.
    public init(
        code: Code, phase: Phase, message: String, request: RequestSummary? = nil, underlying: Underlying? = nil
    ) {
        let isUnsent = phase == .checking || phase == .waiting || phase == .connecting
        box = Box(
            Content(
                code: code, phase: phase, message: message.printable(), isUnsent: isUnsent, request: request,
                underlying: underlying))
    }

    /// The kind of the failure.
    public var code: Code { box.content.code }
    /// How far the request had come.
    public var phase: Phase { box.content.phase }
    /// What happened, and what to do about it, as a sentence to show to a person.
    public var message: String { box.content.message }

    /// Which request it was.
    public var request: RequestSummary? {
        get { box.content.request }
        set { rewrite { $0.request = newValue } }
    }

    /// The status of the response, if there was one.
    public var status: Int? {
        get { box.content.status }
        set { rewrite { $0.status = newValue } }
    }

    /// What the layer beneath said.
    public var underlying: Underlying? {
        get { box.content.underlying }
        set { rewrite { $0.underlying = newValue } }
    }

    /// A Boolean value that indicates whether the server cannot have acted upon the request.
    ///
    /// It is `true` if nothing of the request was sent, and if an HTTP/2 server closed the connection and said that it did not
    /// process the request. Any request may then be sent again, whatever its method.
    public var isUnsent: Bool {
        get { box.content.isUnsent }
        set { rewrite { $0.isUnsent = newValue } }
    }

    var details: Details? {
        get { box.content.details }
        set { rewrite { $0.details = newValue } }
    }

    private mutating func rewrite(_ change: (inout Content) -> Void) {
        var content = box.content
        change(&content)
        box = Box(content)
    }

    private struct Content: Sendable, Hashable {
        let code: Code
        let phase: Phase
        let message: String
        var isUnsent: Bool
        var request: RequestSummary?
        var status: Int?
        var underlying: Underlying?
        var details: Details?
    }

    private final class Box: Sendable {
        let content: Content

        init(_ content: Content) { self.content = content }
    }

    /// Errors are equal if everything that they say is.
    public static func == (left: Self, right: Self) -> Bool {
        left.box === right.box || left.box.content == right.box.content
    }

    /// Adds everything that it says.
    public func hash(into hasher: inout Hasher) { hasher.combine(box.content) }
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
