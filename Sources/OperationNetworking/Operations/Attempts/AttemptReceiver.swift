// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import Synchronization

/// Hands what a task tells on to the attempts of its operation, with the number of the attempt.
package final class AttemptReceiver: NetworkReceiver {
    /// Nil once the attempt is over: a task may keep its receiver for as long as it likes, and the attempts keep the task.
    private let attempts: Locked<NetworkAttempts?>
    private let number: Int
    /// Whether somebody is told of the requests that the session sends for it.
    private let isObserved: Bool
    /// Whether the session tells of each request, and with that when its body was sent.
    private let hasHops = Atomic(false)

    init(_ attempts: NetworkAttempts, _ number: Int, isObserved: Bool) {
        self.attempts = Locked(attempts)
        self.number = number
        self.isObserved = isObserved
    }

    /// The attempt is over: what comes from now on is not heard.
    func letGo() {
        let left = attempts.withLock { exchange(&$0, with: nil) }
        withExtendedLifetime(left) {}
    }

    /// Whether the attempt is over, so that all calls are ignored.
    var isOver: Bool { present == nil }

    private var present: NetworkAttempts? { attempts.withLock { $0 } }

    package func task(_ task: any NetworkTask, didReceive head: ResponseHead) {
        present?.received(head, by: task, number)
    }

    package func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {
        present?.received(bytes, by: task, number)
    }

    package func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
        present?.transferEnded(error, number)
    }

    package func task(_ task: any NetworkTask, didSend count: Int64, of total: Int64?) { sent(count, of: total) }

    package func task(_ task: any NetworkTask, didCollect metrics: TransferMetrics) {
        present?.collected(metrics, number)
    }

    package func taskMayLeave(_ task: any NetworkTask) -> Bool { present?.mayLeave(number) ?? false }

    package var nextReceiver: (any NetworkReceiver)? { isObserved ? HopPost(self) : nil }

    /// So much of the body of the request was sent.
    ///
    /// Word of it may come when the next request has begun, whose body is another.
    func sent(_ count: Int64, of total: Int64?) {
        present?.sent(count, of: total, number, isLastWord: !hasHops.load(ordering: .relaxed))
    }

    /// That will be the head, if all goes well; it is told again in the end.
    func foresee(_ head: ResponseHead) {
        present?.foresee(head, number)
    }

    /// Whether a file of that response must not come to its place.
    func refuses(_ head: ResponseHead) -> Bool {
        present?.refuses(head, number) ?? true
    }

    /// So much of a file is on the disk.
    func saved(_ progress: DownloadProgress) {
        present?.saved(progress, number)
    }
}

extension AttemptReceiver: HopWatcher {
    package func hopBegins(_ request: NetworkRequest) {
        hasHops.store(true, ordering: .relaxed)
        present?.noteHop(.hopBegins(request), number)
    }

    package func sentBody() { present?.noteHop(.bodySent, number) }

    package func left(_ head: ResponseHead) { present?.noteHop(.left(head), number) }

    package func answered(_ head: ResponseHead) { present?.noteHop(.received(head), number) }

    package func measured(_ metrics: TransferMetrics) { present?.noteHop(.measured(metrics), number) }

    package func hopIsOver() { present?.noteHop(.hopIsOver, number) }
}
