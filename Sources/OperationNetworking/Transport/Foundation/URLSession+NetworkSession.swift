// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A `URLSession` can carry the requests of OperationKit, regardless of its delegate.
///
/// ```swift
/// func title(of url: URL) -> NetworkDataOperation<String> {
///     NetworkDataOperation(url: url, urlSession: URLSession(configuration: .ephemeral)) { data, _ in
///         String(decoding: data, as: UTF8.self)
///     }
/// }
/// ```
///
/// On Apple platforms, the tasks belong to your session, and each task has its own delegate. Questions that this
/// delegate does not answer go to the delegate of the session. On Linux, the tasks belong to a private session, which
/// has the configuration of your session without the options that are unsafe there. On Linux, `URLSession` cannot do
/// everything that ``CurlSession`` can. `Docs/Guides/SessionDifferences.md` lists the differences.
extension URLSession: NetworkSession {
    /// Creates a task that waits for its first `resume()`.
    ///
    /// On Apple platforms, the tasks of a background session end with ``NetworkError/Code/sessionUnavailable``. Use
    /// `BackgroundSession` instead.
    public func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        URLSessionTransferTask(request, receiver, URLSessionAdapter.of(self), URLSessionAdapter.Extras(owner: self))
    }

    /// Ends all tasks that were created by ``makeTask(with:receiver:)`` with ``NetworkError/Code/sessionClosed``.
    ///
    /// Tasks that are resumed later end in the same way. Call this method before you invalidate the session. After the
    /// method returns, no more tasks are created in the session. The method waits for a task that another thread is
    /// creating, including your delegate's `urlSession(_:didCreateTask:)`. On Apple platforms, a request that is sent
    /// in an invalidated session fails with the same code. On Linux, invalidating the session does not affect these
    /// tasks.
    public func closeNetworkTasks() {
        URLSessionAdapter.of(self).close()
    }
}
