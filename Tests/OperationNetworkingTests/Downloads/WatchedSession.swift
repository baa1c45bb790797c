// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking

/// A session whose tasks report each call before it is made, and their end after it was delivered.
final class WatchedSession: NetworkSession {
    enum Call: Sendable { case resume, suspend, cancel, end }

    private let session: any NetworkSession
    private let willCall: @Sendable (Call) -> Void

    init(_ session: any NetworkSession, willCall: @escaping @Sendable (Call) -> Void) {
        self.session = session
        self.willCall = willCall
    }

    func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        WatchedTask(session.makeTask(with: request, receiver: WatchedReceiver(receiver, willCall)), willCall)
    }
}

private final class WatchedReceiver: NetworkReceiver {
    private let receiver: any NetworkReceiver
    private let didCall: @Sendable (WatchedSession.Call) -> Void

    init(_ receiver: any NetworkReceiver, _ didCall: @escaping @Sendable (WatchedSession.Call) -> Void) {
        self.receiver = receiver
        self.didCall = didCall
    }

    func task(_ task: any NetworkTask, didReceive head: ResponseHead) { receiver.task(task, didReceive: head) }

    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {
        receiver.task(task, didReceive: bytes)
    }

    func task(_ task: any NetworkTask, didCollect metrics: TransferMetrics) {
        receiver.task(task, didCollect: metrics)
    }

    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
        receiver.task(task, didEndWith: error)
        didCall(.end)
    }
}

private final class WatchedTask: WrappingTask {
    let task: any NetworkTask
    private let willCall: @Sendable (WatchedSession.Call) -> Void

    init(_ task: any NetworkTask, _ willCall: @escaping @Sendable (WatchedSession.Call) -> Void) {
        self.task = task
        self.willCall = willCall
    }

    func resume() {
        willCall(.resume)
        task.resume()
    }

    func suspend() {
        willCall(.suspend)
        task.suspend()
    }

    func cancel() {
        willCall(.cancel)
        task.cancel()
    }
}
