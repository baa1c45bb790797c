// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Keeps the calls that put a body on hold and let it go on in the order of the changes, one at a time.
///
/// One thread suspends an operation and has still to tell the body; another, or the hook itself, resumes it. Told by
/// both, the body might hear of the resumption first and stay on hold for ever. So only one thread tells it, and looks
/// afterwards whether that is still true.
struct SuspensionHooks {
    private var isBodyOnHold = false
    private var isTelling = false

    /// What the body is to be told now by the calling thread; nil if nothing, or if another thread is at it.
    mutating func next(isSuspended: Bool) -> Bool? {
        guard !isTelling, isBodyOnHold != isSuspended else { return nil }
        isTelling = true
        isBodyOnHold = isSuspended
        return isSuspended
    }

    /// The body was told.
    mutating func finishTelling() { isTelling = false }
}
