// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Keeps the calls that put a body on hold and let it go on in the order of the changes, one at a time.
///
/// One thread suspends an operation and has still to tell the body; another, or the hook itself, resumes it. Told by
/// both, the body might hear of the resumption first and stay on hold for ever. So only one thread tells it, and looks
/// afterwards whether that is still true.
struct SuspensionHooks {
    private var isBodyOnHold = false
    private var telling = RepeatFlag()

    /// What brings timeout and body into line with the state.
    struct Step {
        let isSuspended: Bool
        /// Whether the body does not know yet; else it is only the timeout that changed while nobody was told.
        let tellsBody: Bool
    }

    /// What the calling thread is to do now; nil if nothing, or if another thread is at it.
    ///
    /// - Parameter isTimeoutAstray: Whether the timeout goes on though the operation is suspended, or the reverse.
    mutating func next(isSuspended: Bool, isTimeoutAstray: Bool) -> Step? {
        let tellsBody = isBodyOnHold != isSuspended
        guard tellsBody || isTimeoutAstray, telling.request() else { return nil }
        isBodyOnHold = isSuspended
        return Step(isSuspended: isSuspended, tellsBody: tellsBody)
    }

    /// Notes that the step is done.
    ///
    /// The thread that did it then asks for the next one.
    mutating func finishTelling() { telling.stop() }
}
