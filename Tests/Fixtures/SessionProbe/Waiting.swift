// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import OperationNetworking

/// Waits for the end of a task without threads, which a forked child would not have.
final class Waiting: NetworkReceiver, @unchecked Sendable {
    // Sendable: `outcome` is written before the semaphore is signaled, and read afterward.

    private let isOver = DispatchSemaphore(value: 0)
    private var outcome = "nothing"

    func task(_ task: any NetworkTask, didReceive head: ResponseHead) { outcome = "\(head.status)" }
    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {}

    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
        if let error { outcome = "\(error.code)" }
        isOver.signal()
    }

    /// Sends a request, waits for its end, and returns the status or the error code.
    static func run(_ request: NetworkRequest, on session: any NetworkSession) -> String {
        let receiver = Waiting()
        session.makeTask(with: request, receiver: receiver).resume()
        receiver.isOver.wait()
        return receiver.outcome
    }
}
