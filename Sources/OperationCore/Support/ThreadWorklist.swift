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
        guard begin() else { return later(work) }
        work()
        finish()
    }

    // The same in steps, for work that needs no closure where it is done at once.

    /// Whether the calling thread may do such work now, to be followed by `finish`; else it goes to `later`.
    static func begin() -> Bool {
        let notes = ThreadNotes.current
        if notes.isWorking { return false }
        notes.isWorking = true
        return true
    }

    /// Leaves work to the outermost call.
    static func later(_ work: @escaping () -> Void) {
        ThreadNotes.current.pending.append(work)
    }

    /// Does what was left meanwhile.
    static func finish() {
        let notes = ThreadNotes.current
        while let work = notes.pending.popFirst() { work() }
        notes.isWorking = false
    }
}

extension ThreadWorklist {
    /// Lets go of a value that may hold an operation which holds another, and so on: freed in a loop.
    ///
    /// For a `deinit`, on whose stack the value would go otherwise. It must be the last that holds the value, so take it
    /// out of its place: `letGo(exchange(&place, with: nil))`.
    package static func letGo<Value>(_ value: consuming Value) {
        var value: Value? = value
        perform { withExtendedLifetime(exchange(&value, with: nil)) {} }
    }
}
