// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension CancellationCause.Code {
    /// All who had asked for a shared run were cancelled.
    public static let allAskersLeft = Self("allAskersLeft")
    /// The queue in which a shared run was to run did not take it.
    public static let runRefused = Self("runRefused")
    /// Another operation with the same key is present, and is kept.
    public static let alreadyPresent = Self("alreadyPresent")
}

extension CancellationCause {
    static func allAskersLeft(_ last: CancellationCause?) -> CancellationCause {
        CancellationCause(
            code: .allAskersLeft,
            message: "The operation was cancelled because all who had asked for its result were cancelled.",
            underlyingCause: last)
    }

    static func runRefused(_ error: QueueError) -> CancellationCause {
        CancellationCause(
            code: .runRefused,
            message:
                "The operation was cancelled because the queue in which it was to run did not take it: \(error.message)",
            underlyingError: error)
    }

    static func alreadyPresent(_ name: String, queue: String) -> CancellationCause {
        CancellationCause(
            code: .alreadyPresent,
            message: "The operation was cancelled because \(name) is in queue \(queue) with the same key, and is kept. "
                + "Add it with the policy replace or append if it is to run.")
    }

    static func replaced(_ name: String, queue: String) -> CancellationCause {
        CancellationCause(
            code: .replaced,
            message: "The operation was cancelled because \(name) was added to queue \(queue) with the same key "
                + "and took its place.")
    }
}
