// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A thread on which operations of queues end, and which begins there what they made room for, if that takes but a moment.
///
/// To wake a thread of the queue's for a body that only asks somebody else to do the work costs more than the body.
package enum LentThread {
    /// Runs `work`; where something in it ends, the thread begins the next entry of that queue itself, if that is
    /// ``ManagedOperation/beginsBriefly``.
    package static func lend(by lender: (any ThreadLender)? = nil, _ work: () -> Void) {
        let notes = ThreadNotes.current
        let wasLent = exchange(&notes.isLent, with: true)
        let outer = exchange(&notes.lender, with: lender)
        work()
        notes.isLent = wasLent
        notes.lender = outer
    }
}
