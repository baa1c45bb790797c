// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

// Closures that get the operation, as a delegate does; none of them keeps it alive.
extension NetworkOperation {
    /// Calls `body` while the request's body is sent, with the operation; on the callback queue, never after a
    /// cancellation.
    ///
    /// It takes the place of the ``AnyNetworkOperation/uploadProgressHandler``.
    @discardableResult
    public final func onUploadProgress(
        _ body: @escaping @Sendable (NetworkOperation<TaskResult, ResultType>, TransferProgress) -> Void
    ) -> Self {
        uploadProgressHandler = { [weak self] progress in
            if let self { body(self, progress) }
        }
        return self
    }

    /// Calls `body` while the response's body is received, with the operation; on the callback queue, never after a
    /// cancellation.
    ///
    /// It takes the place of the ``AnyNetworkOperation/downloadProgressHandler``.
    @discardableResult
    public final func onDownloadProgress(
        _ body: @escaping @Sendable (NetworkOperation<TaskResult, ResultType>, TransferProgress) -> Void
    ) -> Self {
        downloadProgressHandler = { [weak self] progress in
            if let self { body(self, progress) }
        }
        return self
    }

    /// Calls `body` when the operation gave its result, with the operation; on the callback queue, beside the handlers.
    @discardableResult
    public final func onSuccess(
        _ body: @escaping @Sendable (NetworkOperation<TaskResult, ResultType>, ResultType) -> Void
    ) -> Self {
        observe { [weak self] outcome in
            if let self, case .success(let result) = outcome { body(self, result) }
        }
        return self
    }

    /// Calls `body` when the operation was cancelled, with the operation; on the callback queue, beside the handlers.
    ///
    /// Keep the operation: a cancelled one that nobody holds any more is gone before it could be handed over.
    @discardableResult
    public final func onCancellation(
        _ body: @escaping @Sendable (NetworkOperation<TaskResult, ResultType>, CancellationCause) -> Void
    ) -> Self {
        observe { [weak self] outcome in
            if let self, let cause = outcome.cancellationCause { body(self, cause) }
        }
        return self
    }
}
