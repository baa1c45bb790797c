// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore
import OperationNetworking

/// What a test expects of one attempt, for `expectAttempts` of a network operation.
///
/// A pause that is not named may be any, or none, and so may be what the operation was put aside for.
public struct ExpectedAttempt: Sendable, CustomStringConvertible {
    private let kind: AttemptTale.Attempt.Kind
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
        let word = AttemptTale.Attempt(kind: kind).description
        if let putAside { return "\(word), put aside for: \(putAside)" }
        guard let pause else { return word }
        let (least, most) = (Told.time(pause.lowerBound), Told.time(pause.upperBound))
        return "\(word), pause \(least == most ? least : "\(least) to \(most)")"
    }

    func fits(_ attempt: AttemptTale.Attempt) -> Bool {
        guard attempt.kind == kind else { return false }
        if let putAside, attempt.putAside?.kind != putAside { return false }
        guard let pause else { return true }
        return attempt.pause.map(pause.contains) ?? false
    }
}
