// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A list of work that turns recursion on one thread into a loop.
///
/// When an operation ends, OperationKit notifies its dependents, which may end and notify their own dependents. Freeing
/// the last operation of a chain frees the operation before it. As plain recursion, a chain of a hundred thousand
/// operations overflows the stack. With this list, an inner call only adds its work to the list, and the outermost call
/// performs all the work in the list.
package enum ThreadWorklist {
    /// Runs `work` now, or after the current work if the calling thread is already inside `perform`.
    package static func perform(_ work: @escaping () -> Void) {
        guard begin() else { return later(work) }
        work()
        finish()
    }

    // The same in steps, for work that needs no closure if it can be done immediately.

    /// Returns whether the calling thread may do such work now and then call `finish`, instead of passing the work to
    /// `later`.
    static func begin() -> Bool {
        let notes = ThreadNotes.current
        if notes.isWorking { return false }
        notes.isWorking = true
        return true
    }

    /// Leaves work for the outermost call.
    static func later(_ work: @escaping () -> Void) {
        ThreadNotes.current.pending.append(work)
    }

    /// Does the work that was left in the meantime.
    static func finish() {
        let notes = ThreadNotes.current
        while let work = notes.pending.popFirst() { work() }
        notes.isWorking = false
    }
}

extension ThreadWorklist {
    /// Releases a value in a loop if it may hold an operation that holds another operation, and so on.
    ///
    /// Call this method in a `deinit`, which would otherwise release the value by recursion. The argument must be the
    /// last reference to the value, so take the value out of its property with `release(exchange(&place, with: nil))`.
    package static func release<Value>(_ value: consuming Value) {
        var value: Value? = value
        perform { withExtendedLifetime(exchange(&value, with: nil)) {} }
    }
}
