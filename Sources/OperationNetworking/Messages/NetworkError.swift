// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An error that describes why a request failed.
///
/// The error contains a code, the phase in which the request failed, a summary of the request, and a message that
/// describes the failure and its solution.
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
/// The text of the error never contains user names, passwords or query values. Of all header values, the text can
/// contain only the content type of the response, the scheme of a redirect URL and the time in a `Retry-After` header.
/// The only part of a body that the text can contain is the coding path of an unexpected value. If your code creates an
/// error, its message can contain other values.
///
/// Guide: `Docs/Guides/NetworkErrors.md`
public struct NetworkError: Error, Sendable, Hashable {
    /// The content, in a separate object because errors are passed on far more often than they are read.
    private var box: Box<Content>

    /// Creates an error that describes the failure of a request.
    ///
    /// - Parameters:
    ///   - code: The code that identifies the kind of failure.
    ///   - phase: The phase in which the request failed. In ``Phase/connecting`` and earlier phases, the request counts
    ///     as unsent.
    ///   - message: A message that describes the failure and its solution. The initializer replaces control characters
    ///     and line breaks with spaces.
    ///   - request: A summary of the request that failed. The default is `nil`.
    ///   - underlying: The library or system error that caused the failure. The default is `nil`.
    public init(
        code: Code, phase: Phase, message: String, request: RequestSummary? = nil, underlying: Underlying? = nil
    ) {
        let isUnsent = phase == .checking || phase == .waiting || phase == .connecting
        box = Box(
            Content(
                code: code, phase: phase, message: message.printable(), isUnsent: isUnsent, request: request,
                underlying: underlying))
    }

    /// The code that identifies the kind of failure.
    public var code: Code { box.value.code }
    /// The phase in which the request failed.
    public var phase: Phase { box.value.phase }
    /// A message for the user that describes the failure and its solution.
    public var message: String { box.value.message }

    /// A summary of the request that failed, or `nil` if the request is not known.
    public var request: RequestSummary? {
        get { box.value.request }
        set { rewrite { $0.request = newValue } }
    }

    /// The status code of the response, or `nil` if there was no response.
    public var status: Int? {
        get { box.value.status }
        set { rewrite { $0.status = newValue } }
    }

    /// The library or system error that caused the failure, or `nil` if there is no such error.
    public var underlying: Underlying? {
        get { box.value.underlying }
        set { rewrite { $0.underlying = newValue } }
    }

    /// A Boolean value that indicates whether it is certain that the server did not process the request.
    ///
    /// The value is `true` if the session sent no part of the request. The value is also `true` if an HTTP/2 server
    /// closed the connection and reported that it did not process the request. In both cases, you can send the request
    /// again, regardless of its method.
    public var isUnsent: Bool {
        get { box.value.isUnsent }
        set { rewrite { $0.isUnsent = newValue } }
    }

    var details: Details? {
        get { box.value.details }
        set { rewrite { $0.details = newValue } }
    }

    private mutating func rewrite(_ change: (inout Content) -> Void) {
        var content = box.value
        change(&content)
        box = Box(content)
    }

    /// Returns the error with other texts in its message and its underlying error.
    ///
    /// - Parameter change: A closure that returns the new text.
    package func rewording(_ change: (String) -> String) -> NetworkError {
        var error = self
        error.rewrite { content in
            content.message = change(content.message)
            content.underlying = content.underlying.map { cause in
                Underlying(domain: cause.domain, number: cause.number, text: change(cause.text))
            }
        }
        return error
    }

    private struct Content: Sendable, Hashable {
        let code: Code
        let phase: Phase
        var message: String
        var isUnsent: Bool
        var request: RequestSummary?
        var status: Int?
        var underlying: Underlying?
        var details: Details?
    }

    /// Returns a Boolean value that indicates whether two errors have the same content.
    public static func == (left: Self, right: Self) -> Bool {
        left.box === right.box || left.box.value == right.box.value
    }

    /// Hashes the content of the error.
    public func hash(into hasher: inout Hasher) { hasher.combine(box.value) }
}

extension NetworkError: CustomStringConvertible {
    /// The code, the phase, the request and the message in one line, for a log.
    public var description: String {
        let place = request.map { " \($0)" } ?? ""
        let answer = status.map { " (status \($0))" } ?? ""
        let cause = underlying.map { " [\($0)]" } ?? ""
        let end = retryEnd.map { " (attempts: \(attempts.count), \($0))" } ?? ""
        return "[\(code) while \(phase)]\(place)\(answer): \(message)\(cause)\(end)"
    }
}

extension NetworkError: LocalizedError {
    /// The message of the error, which you can show to a user.
    public var errorDescription: String? { message }
}

extension NetworkError {
    /// The values that only the errors of operations have.
    ///
    /// The values are separate, so that errors of sessions stay small.
    struct Details: Sendable, Hashable {
        var bodyPrefix: Data?
        var cause: Boxed?
        var apiError: Boxed?
        var attempts: [AttemptRecord] = []
        var retryAfter: Duration?
        var retryEnd: RetryReason?
    }

    /// An error of any type.
    ///
    /// Two boxed errors are equal if their descriptions are equal.
    struct Boxed: Sendable, Hashable {
        let error: any Error

        static func == (left: Self, right: Self) -> Bool { "\(left.error)" == "\(right.error)" }
        func hash(into hasher: inout Hasher) { hasher.combine("\(error)") }
    }

    /// The first bytes of the response body, up to the limit in ``ResponseRules/errorBodyBytes``, or `nil` if they are
    /// not available.
    ///
    /// The bytes can contain secrets. A report contains them only if you pass `true` to ``report(showingBody:)``.
    public var bodyPrefix: Data? {
        get { details?.bodyPrefix }
        set { change { $0.bodyPrefix = newValue } }
    }

    /// Another error that caused the failure, such as an error that a hook, the evaluator or a decoder threw, or `nil`
    /// if there is no other error.
    ///
    /// If an operation cannot repeat a failed attempt, for example because the request body can be read only once, the
    /// value can be the error of that attempt.
    public var cause: (any Error)? {
        get { details?.cause?.error }
        set { change { $0.cause = newValue.map(Boxed.init) } }
    }

    /// The error that ``ResponseRules/decodeError`` decoded from the response body, or `nil` if there is no such error.
    public var apiError: (any Error)? {
        get { details?.apiError?.error }
        set { change { $0.apiError = newValue.map(Boxed.init) } }
    }

    mutating func change(_ change: (inout Details) -> Void) {
        var details = details ?? Details()
        change(&details)
        self.details = details == Details() ? nil : details
    }
}

extension NetworkError {
    /// A phase of a request, such as the establishment of the connection.
    ///
    /// Future versions may add phases.
    public struct Phase: Hashable, Sendable, CustomStringConvertible {
        /// The name of the phase, which you can use as a metric label.
        public let description: String

        package init(_ name: String) { description = name }

        /// The operation was creating and validating the request.
        public static let checking = Phase("checking")
        /// The request was waiting, for example for a credential or for other requests in the session.
        public static let waiting = Phase("waiting")
        /// The session was establishing a connection, including the name lookup, the proxy and TLS.
        public static let connecting = Phase("connecting")
        /// The session was sending the request.
        public static let sending = Phase("sending")
        /// The session was waiting for the response headers or was receiving them.
        public static let awaitingResponse = Phase("awaitingResponse")
        /// The session was receiving the response body.
        public static let receiving = Phase("receiving")
        /// The operation was validating or decoding the complete response.
        public static let evaluating = Phase("evaluating")
    }
}

extension NetworkError {
    /// A library or system error, such as an error from libcurl, that caused a network error.
    public struct Underlying: Hashable, Sendable, CustomStringConvertible {
        /// The source of the error, such as `libcurl`, `NSURLErrorDomain` or `errno`.
        public let domain: String
        /// The number of the error in its domain.
        public let number: Int
        /// The text of the error, without control characters and line breaks.
        public let text: String

        /// Creates an underlying error from a domain, a number and a message.
        package init(domain: String, number: Int, text: String) {
            self.domain = domain
            self.number = number
            self.text = text.printable()
        }

        /// The domain, the number and the text of the error.
        public var description: String { "\(domain) \(number): \(text)" }
    }
}

extension NetworkError {
    /// Creates an error that your code can throw in an evaluator, a validation rule or a ``ResponseRules/decodeError``
    /// closure.
    ///
    /// The ``phase`` of the error is ``Phase/evaluating``. For example, throw an error with the code
    /// ``Code/credentialRejected`` if the response body reports that the credential is not valid.
    ///
    /// - Parameters:
    ///   - code: The code that identifies the kind of failure.
    ///   - message: A message that describes the failure and its solution. The default is `nil`, which uses a standard
    ///     message for the code.
    public init(_ code: Code, message: String? = nil) {
        let standard =
            code == .credentialRejected
            ? "The body of the response rejects the credential. Sign in again, or check whether the user has this "
                + "permission."
            : "The response was refused with the code \(code)."
        self.init(code: code, phase: .evaluating, message: message ?? standard)
    }

    /// Creates a network error from any error, such as a Foundation error.
    ///
    /// The result depends on the type of the error:
    ///
    /// - A `NetworkError` does not change.
    /// - A `CancellationError` becomes an error with the code ``Code/cancelled``.
    /// - A `URLError` becomes an error with the corresponding code and phase.
    /// - A `DecodingError` becomes an error with the code ``Code/undecodableResult`` and the phase
    ///   ``Phase/evaluating``, whose message includes the coding path of the invalid value.
    /// - Any other error becomes the ``cause`` of a new error. The code of the new error is ``Code/preparationFailed``
    ///   in the phases ``Phase/checking`` and ``Phase/waiting``, and ``Code/evaluationFailed`` in all other phases.
    ///
    /// In the phases ``Phase/checking`` and ``Phase/waiting``, a `URLError` and a `DecodingError` also become the
    /// ``cause`` of a new error, because they describe the failure of a hook. In the phase ``Phase/evaluating``, a
    /// `URLError` becomes the ``cause`` of a new error, because it describes the failure of the evaluator.
    ///
    /// - Parameters:
    ///   - error: The error to convert.
    ///   - phase: The phase in which the error occurred. The default is ``Phase/receiving``.
    public init(_ error: any Error, phase: Phase = .receiving) {
        let isEarly = phase == .checking || phase == .waiting
        switch error {
        case let error as NetworkError: self = error
        case is CancellationError:
            self.init(
                code: .cancelled, phase: phase,
                message: "The request was canceled because a hook or the evaluator threw CancellationError.")
        case _ where isEarly:
            self.init(
                code: .preparationFailed, phase: phase,
                message: "The request could not be prepared: a hook of the operation failed.")
            cause = error
        // An evaluator throws an error about its own work, and the transfer was successful.
        case let error as URLError where phase != .evaluating: self.init(error)
        case let error as DecodingError:
            self.init(code: .undecodableResult, phase: .evaluating, message: Self.message(error))
            cause = error
        default:
            self.init(
                code: .evaluationFailed, phase: phase,
                message: "The response could not be converted to a result: the evaluator failed.")
            cause = error
        }
    }

    /// Returns the error of a hook if it says that this request cannot be sent; otherwise, an error with that error as
    /// its cause.
    static func ofHook(_ error: any Error) -> NetworkError {
        guard let error = error as? NetworkError else { return NetworkError(error, phase: .checking) }
        guard error.phase != .checking, error.phase != .waiting, error.code != .cancelled else { return error }
        var failure = NetworkError(
            code: .preparationFailed, phase: .checking,
            message:
                "The request could not be prepared: a hook of the operation waited for another request, which failed. "
                + error.message)
        failure.cause = error
        return failure
    }

    /// Returns the same error with the known facts about its request and response.
    func completed(request: NetworkRequest?, head: ResponseHead?) -> NetworkError {
        var error = self
        error.request = error.request ?? request?.summary
        error.status = error.status ?? head?.status
        if let head {
            error.isUnsent = false
            if error.retryAfter == nil, head.status >= 300, let pause = head.retryAfter(now: Date()) {
                error.retryAfter = pause
            }
        }
        return error
    }

    private static func message(_ error: DecodingError) -> String {
        func place(_ path: [any CodingKey]) -> String {
            // The names may be keys of a dictionary, which the server chose.
            let steps = path.map { key in key.intValue.map { "[\($0)]" } ?? ".\(key.stringValue.quoted(limit: 40))" }
            let whole = steps.joined()
            if steps.isEmpty { return "at the top level" }
            return whole.count > 300 ? "at …\(whole.suffix(300))" : "at \(whole)"
        }
        return switch error {
        case .keyNotFound(let key, let context):
            "The body has no value for the key \(key.stringValue.quoted()) \(place(context.codingPath))."
        case .typeMismatch(let type, let context):
            "Expected a value of type \(type) \(place(context.codingPath)) of the body, found another type."
        case .valueNotFound(let type, let context):
            "Expected a value of type \(type) \(place(context.codingPath)) of the body, found null."
        case .dataCorrupted(let context): "The body cannot be decoded \(place(context.codingPath))."
        @unknown default: "The body cannot be decoded."
        }
    }
}

extension NetworkError {
    /// Returns a multiline string that describes the failure in detail.
    ///
    /// - Parameter showingBody: A Boolean value that indicates whether the report contains the beginning of the
    ///   response body, which can contain secrets. The default is `false`.
    public func report(showingBody: Bool = false) -> String {
        let isEarly = phase == .checking || phase == .waiting || phase == .connecting
        let extent = !isUnsent ? "" : isEarly ? ", nothing was sent" : ", the server did not process it"
        var lines = [message, "  code: \(code), while \(phase)\(extent)"]
        if let request { lines.append("  request: \(request)") }
        if let status { lines.append("  status: \(status)") }
        if let apiError { lines.append("  the server's own error: \(type(of: apiError))") }
        if let cause { lines.append("  cause: \(Self.text(of: cause))") }
        if let underlying { lines.append("  underlying: \(underlying)") }
        if let retryAfter { lines.append("  retry after: \(retryAfter.inSeconds)") }
        if let retryEnd { lines.append("  not sent again: \(retryEnd)") }
        for attempt in attempts { lines.append("  \(attempt)") }
        if let bodyPrefix {
            let text = showingBody ? String(bytes: bodyPrefix, encoding: .utf8) : nil
            lines.append("  body: \(text?.indentedPrintable ?? "\(bodyPrefix.count) bytes")")
        }
        return lines.joined(separator: "\n")
    }

    /// Returns a description of an error without the values that caused it.
    private static func text(of cause: any Error) -> String {
        switch cause {
        case is DecodingError: "DecodingError"
        case let error as any LocalizedError: error.errorDescription?.printable() ?? "\(type(of: cause))"
        default: "\(type(of: cause))"
        }
    }
}

extension NetworkError {
    /// The minimum time to wait before the next request, or `nil` if no `Retry-After` header specifies this time.
    public var retryAfter: Duration? {
        get { details?.retryAfter }
        set { change { $0.retryAfter = newValue } }
    }

    /// The reason why the operation did not make another attempt, or `nil` if no retry policy made this decision.
    ///
    /// For example, the value is `nil` in these cases:
    ///
    /// - The operation has no ``Retry``.
    /// - The error belongs to an earlier attempt, after which the operation made another attempt.
    /// - An ``OfflinePolicy`` or an ``Authenticator`` made the operation fail.
    public var retryEnd: RetryReason? {
        get { details?.retryEnd }
        set { change { $0.retryEnd = newValue } }
    }
}

extension NetworkError {
    /// Whether the error reports that a wait for the network ended or could not begin.
    var isAboutWaiting: Bool { [.offline, .offlineTooLong, .offlineTooOften, .tooManyOffline].contains(code) }
}
