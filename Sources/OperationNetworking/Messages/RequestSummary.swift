// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Which request something is about, without its secrets: fit for logs and messages.
public struct RequestSummary: Sendable, Hashable, CustomStringConvertible {
    /// The method.
    public let method: String
    /// The URL without user, password and fragment, and with each value of its query as three stars.
    ///
    /// In the path, JSON web tokens and the values of parameters with secret names, such as `;jsessionid=…`, are three
    /// stars, too.
    public let url: String

    /// Summarises a request.
    public init(method: String, url: URL) {
        self.init(method: method, url: url, .secrets)
    }

    init(method: String, url: URL, _ redaction: LogRedaction) {
        self.method = method
        self.url = redaction.keepsSecrets ? url.absoluteString : Self.redacted(url, redaction)
    }

    /// Creates a summary that also leaves out what a redaction calls a secret in the path.
    package init(_ summary: RequestSummary, _ redaction: LogRedaction) {
        method = summary.method
        let path = summary.url.prefix { $0 != "?" }
        url = redaction.withoutSecrets(inPath: String(path)) + summary.url[path.endIndex...]
    }

    /// Method and URL.
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

    /// The normalized origin or, if the URL has none, the text in its place without user and password.
    private static func place(of reference: AddressReference) -> String {
        if let origin = reference.origin { return origin }
        let scheme = reference.scheme.map { $0 + ":" } ?? ""
        guard let authority = reference.authority else { return scheme }
        let at = authority.lastIndex(of: "@")
        return scheme + "//" + (at.map { authority[$0...].dropFirst() } ?? authority[...])
    }

    /// The name in a part of a query; nil of a part that may be a secret as a whole.
    ///
    /// That is one without an equals sign, and one that only ends with such signs, as bytes in base64 do, unless it is as
    /// short as names are.
    package static func name(ofPart part: Substring, _ redaction: LogRedaction) -> Substring? {
        // Not by characters: a sign that joins the equals sign would make another one of it.
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

/// An attempt of an operation that failed: what the error at the end tells of those before.
public struct AttemptRecord: Sendable, Hashable {
    /// Which attempt it was, from 1.
    public let number: Int
    /// Why it failed.
    public let code: NetworkError.Code
    /// In which phase.
    public let phase: NetworkError.Phase
    /// The status of its response, if there was one.
    public let status: Int?
    /// When it began, counted from the beginning of the first one.
    public let began: Duration
    /// How long it took, until it failed.
    public let duration: Duration
    /// The pause after it; nil after the last one, and after one that was put aside.
    public let pause: Duration?
    /// What the operation was put aside for after it, if it was; such an attempt does not count.
    public let putAside: WaitReason?

    /// Makes one, for tests of what reads them.
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
    /// The attempts of the operation, the one with this error included; empty if the operation was not to repeat any.
    public var attempts: [AttemptRecord] {
        get { details?.attempts ?? [] }
        set { change { $0.attempts = newValue } }
    }
}

extension AttemptRecord: CustomStringConvertible {
    /// The attempt in a line, for a log.
    public var description: String {
        let answer = status.map { " \($0)" } ?? ""
        let next = pause.map { ", again after \($0.inSeconds)" } ?? ""
        let time = "from \(began.inSeconds) on, for \(duration.inSeconds)"
        return "attempt \(number): \(code)\(answer) while \(phase), \(time)\(next)"
    }
}
