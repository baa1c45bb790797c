// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension NetworkError {
    /// Creates an error for an evaluator, a rule of `validate(_:)` or a ``ResponseRules/decodeError`` to throw.
    ///
    /// `throw NetworkError(.credentialRejected)` says that the body of the response rejects the credential: see
    /// ``Code/credentialRejected``.
    ///
    /// - Parameters:
    ///   - code: The kind of the failure.
    ///   - message: What happened, and what to do about it. The default is a sentence about the code.
    public init(_ code: Code, message: String? = nil) {
        let standard =
            code == .credentialRejected
            ? "The server rejected the credential in the body of its response. Sign in again, or check whether this "
                + "user may do that."
            : "The response was refused with the code \(code)."
        self.init(code: code, phase: .evaluating, message: message ?? standard)
    }

    /// Makes a network error of any error, such as one that Foundation gave.
    ///
    /// A `NetworkError` stays what it is, an `URLError` is taken over by its code, a `DecodingError` says where the body is
    /// not as expected, and any other becomes the ``cause``. Before anything was sent each of these is the ``cause``: it
    /// tells of what a hook did, and not of this request. So is an `URLError` in the phase ``Phase/evaluating``.
    public init(_ error: any Error, phase: Phase = .receiving) {
        let isEarly = phase == .checking || phase == .waiting
        switch error {
        case let error as NetworkError: self = error
        case is CancellationError:
            self.init(code: .cancelled, phase: phase, message: "The request was cancelled from within.")
        case _ where isEarly:
            self.init(
                code: .preparationFailed, phase: phase,
                message: "The request could not be prepared: a hook of the operation failed.")
            cause = error
        // What an evaluator throws is about something that it did, and the transfer was well.
        case let error as URLError where phase != .evaluating: self.init(error)
        case let error as DecodingError:
            self.init(code: .undecodableResult, phase: .evaluating, message: Self.message(error))
            cause = error
        default:
            self.init(
                code: .evaluationFailed, phase: phase,
                message: "The response could not be made into a result: the evaluator failed.")
            cause = error
        }
    }

    /// What a hook threw tells of this request only if it says that this one cannot be sent; else it is the cause.
    static func ofHook(_ error: any Error) -> NetworkError {
        guard let error = error as? NetworkError else { return NetworkError(error, phase: .checking) }
        guard error.phase != .checking, error.phase != .waiting, error.code != .cancelled else { return error }
        var failure = NetworkError(
            code: .preparationFailed, phase: .checking,
            message:
                "The request could not be prepared: what a hook of the operation waited for failed. \(error.message)")
        failure.cause = error
        return failure
    }

    /// The same error with what is known of its request and response.
    func completed(request: NetworkRequest?, head: ResponseHead?) -> NetworkError {
        var error = self
        error.request = error.request ?? request?.summary
        error.status = error.status ?? head?.status
        if let head {
            error.isUnsent = false
            if error.retryAfter == nil, head.status >= 300, let pause = RetryAfter.pause(in: head, now: Date()) {
                error.retryAfter = pause
            }
        }
        return error
    }

    private static func message(_ error: DecodingError) -> String {
        func place(_ path: [any CodingKey]) -> String {
            // The names may be the keys of a dictionary, which the server chose.
            let steps = path.map { key in key.intValue.map { "[\($0)]" } ?? ".\(key.stringValue.quoted(limit: 40))" }
            let whole = steps.joined()
            if steps.isEmpty { return "at its top" }
            return whole.count > 300 ? "at …\(whole.suffix(300))" : "at \(whole)"
        }
        return switch error {
        case .keyNotFound(let key, let context):
            "The body has no value for the key \(key.stringValue.quoted()) \(place(context.codingPath))."
        case .typeMismatch(let type, let context):
            "The body has another type than \(type) \(place(context.codingPath))."
        case .valueNotFound(let type, let context):
            "The body has null in the place of \(type) \(place(context.codingPath))."
        case .dataCorrupted(let context): "The body cannot be decoded \(place(context.codingPath))."
        @unknown default: "The body cannot be decoded."
        }
    }
}
