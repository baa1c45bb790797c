// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

extension CancellationCause.Code {
    /// The task of a network operation was cancelled, and not by the operation.
    public static let networkTaskCancelled = Self("networkTaskCancelled")
}

extension CancellationCause {
    /// The task of the operation was cancelled by somebody else, or a hook of the operation threw `CancellationError`.
    public static let networkTaskCancelled = CancellationCause(
        code: .networkTaskCancelled,
        message: "The operation's network task was cancelled by somebody else than the operation, or from within.")
}
