// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

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
