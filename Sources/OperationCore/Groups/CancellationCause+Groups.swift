// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension CancellationCause {
    static func groupCancelled(_ place: GroupPlace, because cause: CancellationCause?) -> CancellationCause {
        CancellationCause(
            code: .groupCancelled, message: "The operation was cancelled with its group ({group}).", place: place,
            underlyingCause: cause)
    }

    static func groupFailed(
        _ place: GroupPlace, _ failure: GroupFailure.Child?, _ sourceError: (any Error)?
    ) -> CancellationCause {
        let what =
            if sourceError != nil {
                "the sequence of the group's elements failed"
            } else {
                failure.map { "its sibling \($0.name) gave no result" } ?? "the group cannot succeed any more"
            }
        return CancellationCause(
            code: .groupFailed, message: "The operation was cancelled because \(what) ({group}).", place: place,
            underlyingError: sourceError ?? failure?.failure.underlyingError,
            underlyingCause: sourceError == nil ? failure?.failure.cancellation : nil)
    }

    static func groupDecided(_ place: GroupPlace) -> CancellationCause {
        CancellationCause(
            code: .groupDecided, message: "The operation was cancelled because its group ({group}) has its result.",
            place: place)
    }

    static func groupRefused(_ error: GroupError) -> CancellationCause {
        CancellationCause(code: .groupRefused, message: error.message, underlyingError: error)
    }

    static func childCancelled(_ cause: CancellationCause) -> CancellationCause {
        CancellationCause(
            code: .childCancelled,
            message: "The group was cancelled because a child was whose result its body needs. Catch the child's "
                + "cancellation in the body if it can do without.",
            underlyingCause: cause)
    }
}
