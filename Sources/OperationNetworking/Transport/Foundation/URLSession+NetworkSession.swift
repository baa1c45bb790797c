// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A `URLSession` can carry the requests of OperationKit, regardless of its delegate.
///
/// ```swift
/// func title(of url: URL) -> NetworkDataOperation<String> {
///     NetworkDataOperation(
///         url: url, urlSession: URLSession(configuration: .ephemeral)
///     ) { data, _ in
///         String(decoding: data, as: UTF8.self)
///     }
/// }
/// ```
///
/// On Apple platforms, the tasks belong to your session, and each task has its own delegate. If this delegate does not
/// implement a method, the system calls the delegate of the session. On Linux, the tasks belong to a private session,
/// which has the configuration of your session without the options that are unsafe there. On Linux, `URLSession` cannot
/// do everything that ``CurlSession`` can. `Docs/Guides/SessionDifferences.md` lists the differences.
extension URLSession: NetworkSession {
    /// Creates a task that sends a request when you first call the task's `resume()` method.
    ///
    /// If this session is a background session, the task ends with ``NetworkError/Code/sessionUnavailable``. On Apple
    /// platforms, use `BackgroundSession` instead.
    public func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        URLSessionTransferTask(request, receiver, URLSessionAdapter.of(self), URLSessionAdapter.Extras(owner: self))
    }

    /// Ends all tasks from ``makeTask(with:receiver:)`` with ``NetworkError/Code/sessionClosed``.
    ///
    /// Call this method before you invalidate the session. Tasks that you resume later also end with `sessionClosed`.
    /// If another thread is creating a task, the method waits until the task exists and your delegate's
    /// `urlSession(_:didCreateTask:)` has returned. On Linux, invalidating the session does not end the tasks from
    /// ``makeTask(with:receiver:)``.
    public func closeNetworkTasks() {
        URLSessionAdapter.of(self).close()
    }
}
