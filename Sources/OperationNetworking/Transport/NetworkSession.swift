// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Makes tasks that carry one request each to a server and one response back.
///
/// A session knows nothing of policy. It follows no redirect, answers no challenge, keeps no cookie, caches nothing and
/// repeats nothing that a server may have acted upon: all that is done above it, once, for every session.
public protocol NetworkSession: AnyObject, Sendable {
    /// Makes a task that waits for its first `resume()`.
    ///
    /// It never fails: what is wrong with the session is told to the receiver as the task's end.
    ///
    /// - Parameters:
    ///   - request: What to send. It was checked when it was made.
    ///   - receiver: What is told of everything that happens. The task holds it until it has told the end.
    func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask
}
