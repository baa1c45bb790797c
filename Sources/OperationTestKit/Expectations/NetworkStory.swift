// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore
import OperationNetworking

extension AnyNetworkOperation {
    /// What became of its attempts, as one line: `503 → 1 s → connectionLost → 2 s → success`.
    ///
    /// An attempt that failed is told by its status, or else by the kind of its error; then comes the pause after it, or what
    /// the operation was put aside for. The last word is how the operation ended; `…` if it has not. It is meant to be
    /// compared, so that a test that fails shows both lines:
    ///
    /// ```swift
    /// import OperationNetworking
    /// import OperationTestKit
    /// import Testing
    ///
    /// func isSentThreeTimes(_ operation: NetworkDataOperation<Int>) async throws {
    ///     try await operation.expectSuccess()
    ///     #expect(operation.story == "503 → 1 s → connectionLost → 2 s → success")
    /// }
    /// ```
    ///
    /// Attempts are only told apart where the operation has a `retry`, a realm or an offline policy.
    public var story: String {
        AttemptDescription(self).parts.map(\.description).joined(separator: " → ")
    }

    /// Expects these attempts, in this order, and no others.
    ///
    /// ```swift
    /// import OperationNetworking
    /// import OperationTestKit
    ///
    /// func isSentThreeTimes(_ operation: NetworkDataOperation<Int>) async throws {
    ///     try await operation.expectSuccess()
    ///     try operation.expectAttempts(
    ///         .status(503, pause: .seconds(1)), .failure(.connectionLost, pause: .seconds(2) ... .seconds(4)), .success)
    /// }
    /// ```
    public func expectAttempts(
        _ expected: ExpectedAttempt..., fileID: String = #fileID, line: Int = #line
    ) throws(UnmetExpectation) {
        let found = AttemptDescription(self).attempts
        let isSame = expected.count == found.count && zip(expected, found).allSatisfy { $0.fits($1) }
        guard !isSame else { return }
        let first = zip(expected, found).enumerated().first { !$1.0.fits($1.1) }?.offset
        let flaw = first ?? min(expected.count, found.count)
        throw UnmetExpectation(
            "\(Told.subject(self)) did not make the attempts that were expected",
            expected: expected.map(\.description).joined(separator: ", "),
            found: found.isEmpty ? "no attempt" : found.map(\.description).joined(separator: ", "),
            details: [
                "attempt \(flaw + 1) is the first that differs: expected "
                    + (expected.indices.contains(flaw) ? expected[flaw].description : "none") + ", found "
                    + (found.indices.contains(flaw) ? found[flaw].description : "none")
            ], fileID: fileID, line: line)
    }
}

/// The attempts of an operation, as they are told.
struct AttemptDescription {
    struct Attempt: CustomStringConvertible {
        enum Kind: Equatable {
            case status(Int)
            case failure(NetworkError.Code)
            case success
            case cancelled
            case unfinished
        }

        var kind: Kind
        var pause: Duration?
        var putAside: WaitReason?

        var description: String {
            let word =
                switch kind {
                case .status(let status): "\(status)"
                case .failure(let code): "\(code)"
                case .success: "success"
                case .cancelled: "cancelled"
                case .unfinished: "…"
                }
            if let pause { return "\(word), pause \(Told.time(pause))" }
            return putAside.map { "\(word), \($0)" } ?? word
        }
    }

    /// One word of the line.
    enum Part: CustomStringConvertible {
        case attempt(Attempt.Kind)
        case pause(Duration)
        case aside(WaitReason)

        var description: String {
            switch self {
            case .attempt(let kind): Attempt(kind: kind).description
            case .pause(let pause): Told.time(pause)
            case .aside(let reason): reason.description
            }
        }
    }

    let attempts: [Attempt]

    init(_ operation: any AnyNetworkOperation) {
        let records = operation.failedAttempts
        var attempts = records.map { record in
            Attempt(
                kind: Self.kind(record.code, record.status), pause: record.pause, putAside: record.putAside)
        }
        let isAgain = records.last.map { $0.pause != nil || $0.putAside != nil } ?? true
        switch operation.anyEnd {
        case .success?: attempts.append(Attempt(kind: .success))
        // The last attempt is that with the error, unless none was written down, or something else failed.
        case .failure(let error)?:
            let kind = (error as? NetworkError).map { Self.kind($0.code, $0.status) }
            if isAgain, let kind { attempts.append(Attempt(kind: kind)) }
        case .cancelled?: attempts.append(Attempt(kind: .cancelled))
        case nil: if isAgain, operation.attemptCount > 0 { attempts.append(Attempt(kind: .unfinished)) }
        }
        self.attempts = attempts
    }

    var parts: [Part] {
        attempts.flatMap { attempt in
            var parts = [Part.attempt(attempt.kind)]
            if let pause = attempt.pause { parts.append(.pause(pause)) }
            if let reason = attempt.putAside { parts.append(.aside(reason)) }
            return parts
        }
    }

    private static func kind(_ code: NetworkError.Code, _ status: Int?) -> Attempt.Kind {
        if code == .unacceptableStatus, let status { .status(status) } else { .failure(code) }
    }
}

/// How an operation ended, whatever its types.
enum AnyEnd {
    case success
    case failure(any Error)
    case cancelled
}

extension ManagedOperation {
    fileprivate var anyEnd: AnyEnd? { (self as? any EndDescribing)?.typelessEnd }
}

/// An operation with types that only it knows.
private protocol EndDescribing {
    var typelessEnd: AnyEnd? { get }
}

extension TypedOperation: EndDescribing {
    fileprivate final var typelessEnd: AnyEnd? {
        switch outcome {
        case .success?: .success
        case .failure(let error)?: .failure(error)
        case .cancelled?: .cancelled
        case nil: nil
        }
    }
}

/// What a test expects of one attempt, for `expectAttempts` of a network operation.
///
/// A pause that is not named may be any, or none, and so may be what the operation was put aside for.
public struct ExpectedAttempt: Sendable, CustomStringConvertible {
    private let kind: AttemptDescription.Attempt.Kind
    private var pause: ClosedRange<Duration>?
    /// What the operation was put aside for after it.
    private var putAside: WaitReason.Kind?

    /// The server answered with this status, which is not accepted.
    public static func status(_ status: Int, pause: Duration? = nil) -> Self {
        Self(kind: .status(status), pause: pause.map { $0...$0 })
    }

    /// The server answered with this status, and the pause lies in this range.
    public static func status(_ status: Int, pause: ClosedRange<Duration>) -> Self {
        Self(kind: .status(status), pause: pause)
    }

    /// It failed so.
    public static func failure(_ code: NetworkError.Code, pause: Duration? = nil) -> Self {
        Self(kind: .failure(code), pause: pause.map { $0...$0 })
    }

    /// It failed so, and the pause lies in this range.
    public static func failure(_ code: NetworkError.Code, pause: ClosedRange<Duration>) -> Self {
        Self(kind: .failure(code), pause: pause)
    }

    /// The server answered with this status, and the operation was put aside for that: `.status(401, putAside:
    /// .credential)`.
    public static func status(_ status: Int, putAside reason: WaitReason.Kind) -> Self {
        Self(kind: .status(status), putAside: reason)
    }

    /// It failed so, and the operation was put aside for that: `.failure(.notConnected, putAside: .network)`.
    public static func failure(_ code: NetworkError.Code, putAside reason: WaitReason.Kind) -> Self {
        Self(kind: .failure(code), putAside: reason)
    }

    /// It gave the result of the operation.
    public static var success: Self { Self(kind: .success) }

    /// The operation was cancelled in it, or in the pause before it.
    public static var cancelled: Self { Self(kind: .cancelled) }

    /// What is expected, in a few words.
    public var description: String {
        let word = AttemptDescription.Attempt(kind: kind).description
        if let putAside { return "\(word), put aside for: \(putAside)" }
        guard let pause else { return word }
        let (least, most) = (Told.time(pause.lowerBound), Told.time(pause.upperBound))
        return "\(word), pause \(least == most ? least : "\(least) to \(most)")"
    }

    func fits(_ attempt: AttemptDescription.Attempt) -> Bool {
        guard attempt.kind == kind else { return false }
        if let putAside, attempt.putAside?.kind != putAside { return false }
        guard let pause else { return true }
        return attempt.pause.map(pause.contains) ?? false
    }
}
