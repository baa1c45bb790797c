// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Sessions of Foundation's carry requests, too: any of yours, whatever its delegate is.
///
/// ```swift
/// func title(of url: URL) -> NetworkDataOperation<String> {
///     NetworkDataOperation(url: url, urlSession: URLSession(configuration: .ephemeral)) { data, _ in
///         String(decoding: data, as: UTF8.self)
///     }
/// }
/// ```
///
/// On Apple's systems the tasks are the session's own, each with a delegate of its own; what that leaves open goes to the
/// session's delegate. On Linux they belong to a private session, which is made from the configuration of this one and
/// used in the few ways that do no harm there. It cannot do all that ``CurlSession`` can: `Docs/Guides/SessionDifferences.md`
/// has the list.
extension URLSession: NetworkSession {
    /// Makes a task that waits for its first `resume()`.
    ///
    /// A session for the background makes no such tasks: see `BackgroundSession`.
    public func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        URLSessionTransferTask(request, receiver, URLSessionAdapter.of(self), URLSessionAdapter.Extras(owner: self))
    }

    /// Ends all tasks that were made by ``makeTask(with:receiver:)`` with ``NetworkError/Code/sessionClosed``, and those
    /// that are resumed later.
    ///
    /// Call it before you invalidate the session. When it returns, no task is made in the session any more. It waits for a
    /// task that another thread is making, and so for a delegate of yours in `urlSession(_:didCreateTask:)`. On Apple
    /// platforms, a request that is sent in an invalidated session fails with the same code. On Linux, invalidating the
    /// session does not reach these tasks.
    public func closeNetworkTasks() {
        URLSessionAdapter.of(self).close()
    }
}
