// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension CancellationCause {
    /// The kind of a cause.
    ///
    /// New kinds may be added; compare, and keep a way for those you do not know.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the kind, fit for a metric's label.
        public let description: String

        /// Makes a kind of your own.
        public init(_ name: String) {
            description = name
        }

        /// Somebody called `cancel`.
        public static let requested = Code("requested")
        /// The execution took longer than its `timeout`.
        public static let timedOut = Code("timedOut")
        /// The operation's `deadline` passed before it ended.
        public static let deadlinePassed = Code("deadlinePassed")
        /// A dependency failed, and the rule of the edge says that its dependents are cancelled.
        public static let dependencyFailed = Code("dependencyFailed")
        /// A dependency was cancelled, and the rule of the edge says that its dependents are cancelled.
        public static let dependencyCancelled = Code("dependencyCancelled")
        /// An input could not be given, since some of the dependencies from which it comes were removed.
        public static let inputMissing = Code("inputMissing")
        /// The body returned without a result and without an error.
        public static let noResult = Code("noResult")
        /// The Swift task that awaited the operation was cancelled.
        public static let taskCancelled = Code("taskCancelled")
        /// A body wanted to wait, and as many do already as there may be threads.
        public static let tooManyWaits = Code("tooManyWaits")
        /// A body was about to wait for an operation that cannot end before that body has returned.
        public static let waitsForItself = Code("waitsForItself")
        /// The queue was shut down before the operation ended.
        public static let shutDown = Code("shutDown")
        /// The group whose child it is was cancelled.
        public static let groupCancelled = Code("groupCancelled")
        /// Another child of its group gave no result, and the group failed.
        public static let groupFailed = Code("groupFailed")
        /// Its group has its result, and needs it no more.
        public static let groupDecided = Code("groupDecided")
        /// The group that was to run it is over, or is waited for by it.
        public static let groupRefused = Code("groupRefused")
        /// A child of the group was cancelled, and the body needed its result.
        public static let childCancelled = Code("childCancelled")
        /// The body itself threw a `CancellationError`.
        public static let bodyCancelled = Code("bodyCancelled")
    }
}

extension CancellationCause {
    /// Somebody called `cancel()`.
    public static let requested = CancellationCause(code: .requested, message: "The operation was cancelled.")

    /// Somebody cancelled the operation and says why.
    public static func requested(_ reason: String) -> CancellationCause {
        CancellationCause(code: .requested, message: reason)
    }

    /// The task that awaited the operation was cancelled.
    public static let taskCancelled = CancellationCause(
        code: .taskCancelled, message: "The task that awaited the operation was cancelled, and the operation with it.")

    /// The body threw a `CancellationError`.
    public static let bodyCancelled = CancellationCause(
        code: .bodyCancelled, message: "The operation's body cancelled itself by throwing CancellationError.")

    static let noResult = CancellationCause(
        code: .noResult,
        message: "main() returned without a result. Call finish(withResult:) or finish(withError:) on each path.")

    static let inputMissing = CancellationCause(
        code: .inputMissing,
        message: "An input could not be given, because it comes from several dependencies of which one was removed. "
            + "Remove all dependencies of an input, or none.")

    static func timedOut(after timeout: Duration) -> CancellationCause {
        CancellationCause(
            code: .timedOut,
            message: timeout > .zero
                ? "The operation did not end within its timeout of \(timeout)."
                : "The operation's timeout of \(timeout) leaves it no time to run. Set a timeout above zero.")
    }

    static let tooManyWaits = CancellationCause(
        code: .tooManyWaits,
        message:
            "\(WorkerPool.threadLimit - 1) bodies or evaluators of operations wait for others already, each on a thread of its own, "
            + "and one more could leave none to run what they wait for. Nest less deeply, or await in async code.")

    /// Each of the operations with these names needs the end of the next one.
    static func waitsForItself(_ circle: [String]) -> CancellationCause {
        CancellationCause(
            code: .waitsForItself,
            message: "The wait would never end, because each of these operations needs the end of the next one: "
                + circle.joined(separator: " \u{2192} ")
                + ". Do not wait for an operation, or for a group around it, in what must return before it can end.")
    }

    static func shutDown(_ queue: String) -> CancellationCause {
        CancellationCause(
            code: .shutDown, message: "Queue \(queue) was shut down before the operation ended.")
    }

    static let deadlinePassed = CancellationCause(
        code: .deadlinePassed, message: "The operation had not ended when its deadline passed.")

    static func dependencyFailed(_ name: String, _ error: any Error) -> CancellationCause {
        CancellationCause(
            code: .dependencyFailed,
            message: "The operation was cancelled because its dependency \(name) failed.",
            underlyingError: error)
    }

    static func dependencyCancelled(_ name: String, _ cause: CancellationCause?) -> CancellationCause {
        CancellationCause(
            code: .dependencyCancelled,
            message: "The operation was cancelled because its dependency \(name) was cancelled.",
            underlyingCause: cause)
    }
}
