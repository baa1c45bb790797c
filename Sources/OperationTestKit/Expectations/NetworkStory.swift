// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationNetworking

extension AnyNetworkOperation {
    /// A one-line description of the operation's attempts, such as `503 → 1 s → connectionLost → 2 s → success`.
    ///
    /// An attempt that failed because of its response status appears as the status code. Any other failed attempt
    /// appears as the error code. After each attempt, the text contains the pause or wait that followed, if any. The
    /// text ends with `success`, `canceled` or the last failed attempt, or with `…` if the operation is still in
    /// progress. In a test, compare the description with the expected text:
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
    /// The description contains the individual attempts only if the operation has `retry` settings or another policy
    /// that can start another attempt, such as an `OfflinePolicy`.
    public var story: String {
        AttemptDescription.all(of: self).flatMap(\.parts).joined(separator: " → ")
    }

    /// Checks that the operation made exactly the given attempts, in the given order.
    ///
    /// ```swift
    /// import OperationNetworking
    /// import OperationTestKit
    ///
    /// func isSentThreeTimes(_ operation: NetworkDataOperation<Int>) async throws {
    ///     try await operation.expectSuccess()
    ///     try operation.expectAttempts(
    ///         .status(503, pause: .seconds(1)),
    ///         .failure(.connectionLost, pause: .seconds(2) ... .seconds(4)),
    ///         .success)
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - expected: The attempts that the operation must have made, in order.
    ///   - fileID: The source file that the error reports. The default is the caller's file.
    ///   - line: The source line that the error reports. The default is the caller's line.
    /// - Throws: An ``UnmetExpectation`` that describes the first attempt that differs from the expected attempt, if
    ///   any.
    public func expectAttempts(
        _ expected: ExpectedAttempt..., fileID: String = #fileID, line: Int = #line
    ) throws(UnmetExpectation) {
        let found = AttemptDescription.all(of: self)
        let isSame = expected.count == found.count && zip(expected, found).allSatisfy { $0.fits($1) }
        guard !isSame else { return }
        let first = zip(expected, found).enumerated().first { !$1.0.fits($1.1) }?.offset
        let flaw = first ?? min(expected.count, found.count)
        throw UnmetExpectation(
            "\(Described.subject(self)) did not make the expected attempts",
            expected: expected.map(\.description).joined(separator: ", "),
            found: found.isEmpty ? "no attempt" : found.map(\.description).joined(separator: ", "),
            details: [
                "attempt \(flaw + 1) is the first that differs: expected "
                    + (expected.indices.contains(flaw) ? expected[flaw].description : "none") + ", found "
                    + (found.indices.contains(flaw) ? found[flaw].description : "none")
            ], fileID: fileID, line: line)
    }
}

/// A description of the result of an attempt and of the wait after it.
struct AttemptDescription: CustomStringConvertible {
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

    private var word: String {
        switch kind {
        case .status(let status): "\(status)"
        case .failure(let code): "\(code)"
        case .success: "success"
        case .cancelled: "canceled"
        case .unfinished: "…"
        }
    }

    var description: String {
        if let pause { return "\(word), pause \(Described.time(pause))" }
        return putAside.map { "\(word), \($0)" } ?? word
    }

    /// The text for the result of the attempt, followed by the text for the wait after it, if any.
    var parts: [String] {
        [word, pause.map(Described.time), putAside?.description].compactMap(\.self)
    }

    static func all(of operation: any AnyNetworkOperation) -> [AttemptDescription] {
        let records = operation.failedAttempts
        var attempts = records.map { record in
            AttemptDescription(
                kind: kind(record.code, record.status), pause: record.pause, putAside: record.putAside)
        }
        let isAgain = records.last.map { $0.pause != nil || $0.putAside != nil } ?? true
        switch operation.anyOutcome {
        case .success?: attempts.append(AttemptDescription(kind: .success))
        // The last record is the attempt with the error, unless there is no record or something else failed.
        case .failure(let error)?:
            if isAgain { attempts.append(AttemptDescription(kind: kind(error.code, error.status))) }
        case .cancelled?: attempts.append(AttemptDescription(kind: .cancelled))
        case nil: if isAgain, operation.attemptCount > 0 { attempts.append(AttemptDescription(kind: .unfinished)) }
        }
        return attempts
    }

    private static func kind(_ code: NetworkError.Code, _ status: Int?) -> Kind {
        if code == .unacceptableStatus, let status { .status(status) } else { .failure(code) }
    }
}

/// An attempt that a test expects a network operation to make.
///
/// Pass expected attempts to the operation's `expectAttempts` method. If you specify neither a pause nor a wait reason,
/// the expected attempt matches regardless of the pause or wait after the attempt.
public struct ExpectedAttempt: Sendable, CustomStringConvertible {
    private let kind: AttemptDescription.Kind
    private var pause: ClosedRange<Duration>?
    /// The reason for which the operation waited after the attempt.
    private var putAside: WaitReason.Kind?

    /// Returns an expected attempt that fails because of a status code, with an optional exact pause after it.
    ///
    /// - Parameters:
    ///   - status: The status code of the response.
    ///   - pause: The exact pause after the attempt. The default is `nil`, which accepts any pause.
    public static func status(_ status: Int, pause: Duration? = nil) -> Self {
        Self(kind: .status(status), pause: pause.map { $0...$0 })
    }

    /// Returns an expected attempt that fails because of a status code and is followed by a pause within a range.
    ///
    /// - Parameters:
    ///   - status: The status code of the response.
    ///   - pause: The range of accepted pauses after the attempt.
    public static func status(_ status: Int, pause: ClosedRange<Duration>) -> Self {
        Self(kind: .status(status), pause: pause)
    }

    /// Returns an expected attempt that fails with an error code, with an optional exact pause after it.
    ///
    /// - Parameters:
    ///   - code: The error code of the attempt.
    ///   - pause: The exact pause after the attempt. The default is `nil`, which accepts any pause.
    public static func failure(_ code: NetworkError.Code, pause: Duration? = nil) -> Self {
        Self(kind: .failure(code), pause: pause.map { $0...$0 })
    }

    /// Returns an expected attempt that fails with an error code and is followed by a pause within a range.
    ///
    /// - Parameters:
    ///   - code: The error code of the attempt.
    ///   - pause: The range of accepted pauses after the attempt.
    public static func failure(_ code: NetworkError.Code, pause: ClosedRange<Duration>) -> Self {
        Self(kind: .failure(code), pause: pause)
    }

    /// Returns an expected attempt that fails because of a status code and is followed by a wait for a given reason.
    ///
    /// For example, `.status(401, putAside: .credential)` expects a wait for a credential.
    ///
    /// - Parameters:
    ///   - status: The status code of the response.
    ///   - reason: The kind of event for which the operation waits after the attempt.
    public static func status(_ status: Int, putAside reason: WaitReason.Kind) -> Self {
        Self(kind: .status(status), putAside: reason)
    }

    /// Returns an expected attempt that fails with an error code and is followed by a wait for a given reason.
    ///
    /// For example, `.failure(.notConnected, putAside: .network)` expects a wait for the network.
    ///
    /// - Parameters:
    ///   - code: The error code of the attempt.
    ///   - reason: The kind of event for which the operation waits after the attempt.
    public static func failure(_ code: NetworkError.Code, putAside reason: WaitReason.Kind) -> Self {
        Self(kind: .failure(code), putAside: reason)
    }

    /// An expected attempt that produces the result of the operation.
    public static var success: Self { Self(kind: .success) }

    /// An expected cancellation of the operation, for example during an attempt or in the pause before an attempt.
    public static var cancelled: Self { Self(kind: .cancelled) }

    /// A short description of the expected attempt.
    public var description: String {
        let word = AttemptDescription(kind: kind).description
        if let putAside { return "\(word), paused for: \(putAside)" }
        guard let pause else { return word }
        let (least, most) = (Described.time(pause.lowerBound), Described.time(pause.upperBound))
        return "\(word), pause \(least == most ? least : "\(least) to \(most)")"
    }

    func fits(_ attempt: AttemptDescription) -> Bool {
        guard attempt.kind == kind else { return false }
        if let putAside, attempt.putAside?.kind != putAside { return false }
        guard let pause else { return true }
        return attempt.pause.map(pause.contains) ?? false
    }
}
