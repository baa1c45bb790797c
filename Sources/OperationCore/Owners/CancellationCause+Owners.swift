// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension CancellationCause.Code {
    /// All operations of the operation's owner were cancelled.
    public static let ownerCancelled = Self("ownerCancelled")
    /// The object that owned the operation was freed.
    public static let ownerGone = Self("ownerGone")
}

extension CancellationCause {
    static func ownerCancelled(_ owner: String) -> CancellationCause {
        CancellationCause(
            code: .ownerCancelled, message: "The operation was cancelled with all others of its owner, \(owner).")
    }

    static func ownerGone(_ owner: String) -> CancellationCause {
        CancellationCause(
            code: .ownerGone,
            message: "The operation was cancelled because its owner, \(owner), was freed. "
                + "Give operations that are to outlive it another owner, or none.")
    }
}
