// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What carries out the tasks of a session, on a thread or queue of its own.
package protocol TaskCarrier: AnyObject, Sendable {
    /// What carries one task out while it has a slot.
    associatedtype Transfer
    /// What tasks have here and nowhere else, on that thread.
    associatedtype Extras

    /// Nanoseconds of the clock that its time limits go by.
    var now: Int64 { get }
    /// From any thread: there is something new with the task.
    func post(_ task: SessionTask<Self>)
}
