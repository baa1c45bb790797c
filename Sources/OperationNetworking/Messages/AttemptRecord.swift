// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore

/// A record of an operation's failed attempt to send its request and process the response.
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
