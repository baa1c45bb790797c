// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension CancellationCause.Code {
    /// A condition of the operation did not hold.
    public static let conditionFailed = Self("conditionFailed")
    /// The operation came before its key might run again, and its rule says that it is dropped.
    public static let throttled = Self("throttled")
    /// Another operation with the same key took its place.
    public static let replaced = Self("replaced")
}

extension CancellationCause {
    static func conditionFailed(_ name: String, _ reason: String) -> CancellationCause {
        CancellationCause(
            code: .conditionFailed,
            message: "The operation was cancelled because its condition \"\(name)\" failed: \(reason).")
    }

    static func throttled(key: String, until end: OperationInstant?, now: OperationInstant) -> CancellationCause {
        let reason =
            end.map { "it may run again at \($0), in \(max(now.duration(to: $0), .zero))" }
            ?? "it is running, and has to rest after that"
        return CancellationCause(
            code: .throttled,
            message: "The operation came too early for its key \"\(key)\": \(reason). "
                + "Make another then, or choose .wait.")
    }

    static func replaced(key: String, by name: String) -> CancellationCause {
        CancellationCause(
            code: .replaced,
            message: "The operation waited for its key \"\(key)\", and \(name) took its place.")
    }
}
