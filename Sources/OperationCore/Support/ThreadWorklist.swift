// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Turns recursion into a loop: work that is asked for while other such work runs on the same thread waits for it.
///
/// Ending an operation releases its dependents, which may end and release theirs; freeing the last operation of a chain
/// frees the one before it. Written plainly, a chain of a hundred thousand overflows the stack. Here the innermost call
/// only leaves a note, and the outermost works through the notes.
package enum ThreadWorklist {
    /// Runs `work` now, or, where the calling thread is already inside `perform`, after what it is doing.
    package static func perform(_ work: @escaping () -> Void) {
        let notes = ThreadNotes.current
        if notes.isWorking { return notes.pending.append(work) }
        notes.isWorking = true
        work()
        while let work = notes.pending.popFirst() { work() }
        notes.isWorking = false
    }
}
