// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A summary of a request for logs and error messages, without secrets.
public struct RequestSummary: Sendable, Hashable, CustomStringConvertible {
    /// The HTTP method of the request.
    public let method: String
    /// The URL of the request, without secrets.
    ///
    /// The URL does not contain a user name, a password or a fragment. Three asterisks replace each value in the query.
    /// In the path, asterisks replace JSON web tokens, the keys of well-known services, and values of parameters such
    /// as `;jsessionid=…`.
    public let url: String

    /// Creates a summary from the method and the URL of a request.
    ///
    /// - Parameters:
    ///   - method: The HTTP method of the request.
    ///   - url: The URL of the request, which can contain secrets. The initializer removes the secrets.
    public init(method: String, url: URL) {
        self.init(method: method, url: url, .secrets)
    }

    init(method: String, url: URL, _ redaction: LogRedaction) {
        self.method = method
        self.url = redaction.keepsSecrets ? url.absoluteString : Self.redacted(url, redaction)
    }

    /// Creates a copy of a summary, in which the redaction also hides the secrets of the path.
    package init(_ summary: RequestSummary, _ redaction: LogRedaction) {
        method = summary.method
        let path = summary.url.prefix { $0 != "?" }
        url = redaction.withoutSecrets(inPath: String(path)) + summary.url[path.endIndex...]
    }

    /// The method and the URL of the request, separated by a space.
    public var description: String { "\(method) \(url)" }

    private static func redacted(_ url: URL, _ redaction: LogRedaction) -> String {
        let reference = AddressReference(url.absoluteString)
        let text = redaction.withoutSecrets(inPath: place(of: reference) + reference.path)
        guard let query = reference.query else { return text }
        let items = query.split(separator: "&", omittingEmptySubsequences: false).map { item in
            name(ofPart: item, redaction).map { "\($0)=***" } ?? (item.isEmpty ? "" : "***")
        }
        return "\(text)?\(items.joined(separator: "&"))"
    }

    /// Returns the normalized origin, or the scheme and the authority without user name and password if the URL has
    /// none.
    private static func place(of reference: AddressReference) -> String {
        if let origin = reference.origin { return origin }
        let scheme = reference.scheme.map { $0 + ":" } ?? ""
        guard let authority = reference.authority else { return scheme }
        let at = authority.lastIndex(of: "@")
        return scheme + "//" + (at.map { authority[$0...].dropFirst() } ?? authority[...])
    }

    /// Returns the name in one part of a query, or `nil` if the whole part may be a secret.
    ///
    /// A part without an equals sign may be a secret. So may a part that only ends with equals signs, as Base64 does,
    /// unless it is as short as a name.
    package static func name(ofPart part: Substring, _ redaction: LogRedaction) -> Substring? {
        // Compare scalars, because a combining character after the equals sign would make it a different `Character`.
        guard let equals = part.unicodeScalars.firstIndex(of: "=") else { return nil }
        let (name, value) = (part[..<equals], part.unicodeScalars[equals...].dropFirst())
        if value.isEmpty { return name.utf8.count > longestBareName ? nil : name }
        if value.allSatisfy({ $0 == "=" }) { return nil }
        // The text before the sign may be a pair itself, or a credential: `token%3D…=1`.
        let isPlain = !name.utf8.contains { "%+:".utf8.contains($0) }
        return isPlain || redaction.withoutNamedSecrets(String(name)) == name ? name : nil
    }

    private static let longestBareName = 16
}

/// A record of an operation's failed attempt.
///
/// The ``NetworkError/attempts`` property contains a record of each failed attempt.
public struct AttemptRecord: Sendable, Hashable {
    /// The number of the attempt, starting at 1.
    public let number: Int
    /// The code of the error with which the attempt failed.
    public let code: NetworkError.Code
    /// The phase in which the attempt failed.
    public let phase: NetworkError.Phase
    /// The status code of the response, or `nil` if there was no response.
    public let status: Int?
    /// The time from the start of the first attempt to the start of this attempt.
    public let began: Duration
    /// The duration of the attempt.
    public let duration: Duration
    /// The pause between this attempt and the next attempt.
    ///
    /// The value is `nil` if no attempt follows, or if the operation was paused for the reason in ``putAside``.
    public let pause: Duration?
    /// The reason why the operation was paused after the attempt, such as a network outage or a rejected credential.
    ///
    /// The value is `nil` if the operation was not paused. If the operation was paused, the attempt does not count
    /// toward the maximum number of attempts.
    public let putAside: WaitReason?

    /// Creates a record of a failed attempt, for testing code that reads records.
    ///
    /// - Parameters:
    ///   - number: The number of the attempt, starting at 1.
    ///   - code: The code of the error with which the attempt failed.
    ///   - phase: The phase in which the attempt failed.
    ///   - status: The status code of the response. The default is `nil`, which means that there was no response.
    ///   - began: The time from the start of the first attempt to the start of this attempt. The default is zero.
    ///   - duration: The duration of the attempt. The default is zero.
    ///   - pause: The pause between this attempt and the next attempt. The default is `nil`, which means that no
    ///     attempt follows, or that the operation was paused for the reason in `putAside`.
    ///   - putAside: The reason why the operation was paused after the attempt. The default is `nil`, which means that
    ///     the operation was not paused.
    public init(
        number: Int, code: NetworkError.Code, phase: NetworkError.Phase, status: Int? = nil, began: Duration = .zero,
        duration: Duration = .zero, pause: Duration? = nil, putAside: WaitReason? = nil
    ) {
        self.number = number
        self.code = code
        self.phase = phase
        self.status = status
        self.began = began
        self.duration = duration
        self.pause = pause
        self.putAside = putAside
    }
}

extension NetworkError {
    /// The records of the operation's failed attempts, including the attempt that failed with this error.
    ///
    /// The array is empty if the operation has neither a ``Retry`` nor another policy that can start another attempt.
    public var attempts: [AttemptRecord] {
        get { details?.attempts ?? [] }
        set { change { $0.attempts = newValue } }
    }
}

extension AttemptRecord: CustomStringConvertible {
    /// A description of the attempt in one line, for a log.
    public var description: String {
        let answer = status.map { " \($0)" } ?? ""
        let next = pause.map { ", next attempt after \($0.inSeconds)" } ?? ""
        let time = "started at \(began.inSeconds), lasted \(duration.inSeconds)"
        return "attempt \(number): \(code)\(answer) while \(phase), \(time)\(next)"
    }
}
