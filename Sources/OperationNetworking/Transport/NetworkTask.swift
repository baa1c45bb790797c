// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// One request on its way, and its response.
///
/// Every call is allowed on any thread at any time, from within the receiver, too; none blocks. After the end they do
/// nothing. A task that is let go of goes on.
///
/// There are two brakes that do not know each other: `suspend` and `resume` are the user's and stop both directions;
/// `hold` and `proceed` are the receiver's and stop what comes in. Bytes come in when neither is set. None of the brakes
/// counts: two of one are as good as one.
public protocol NetworkTask: AnyObject, Sendable {
    /// Starts the task, or lets it go on where it stopped.
    func resume()

    /// Stops both directions on the wire until `resume()`; one that waits for a slot leaves the line.
    ///
    /// A call of the receiver that has begun is not undone. No time limit runs meanwhile. A server may lose its patience.
    func suspend()

    /// Ends the task as cancelled.
    ///
    /// When this returns nothing more is told but the end, with the code ``NetworkError/Code/cancelled``; only an end that
    /// was decided before stays what it was. A call of the receiver that another thread had decided upon before may still
    /// be on its way then; called from within the receiver, there is none. Tasks that were never
    /// resumed tell their end, too.
    func cancel()

    /// Stops the bytes that come in, until `proceed()`: for a receiver that has more than it can deal with.
    ///
    /// Called from within the receiver, nothing comes after that call but progress of the request's body, which goes on, and
    /// the end of a failure or a cancel. No time limit runs meanwhile.
    func hold()

    /// Lets bytes come in again.
    func proceed()
}
