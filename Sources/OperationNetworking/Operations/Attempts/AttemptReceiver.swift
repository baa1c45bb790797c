// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Hands what a task tells on to the attempts of its operation, with the number of the attempt.
package final class AttemptReceiver: NetworkReceiver {
    private let attempts: NetworkAttempts
    private let number: Int
    /// Whether somebody is told of the requests that the session sends for it.
    private let isObserved: Bool

    init(_ attempts: NetworkAttempts, _ number: Int, isObserved: Bool) {
        self.attempts = attempts
        self.number = number
        self.isObserved = isObserved
    }

    package func task(_ task: any NetworkTask, didReceive head: ResponseHead) {
        attempts.received(head, by: task, number)
    }

    package func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {
        attempts.received(bytes, by: task, number)
    }

    package func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
        attempts.transferEnded(error, number)
    }

    package func task(_ task: any NetworkTask, didSend count: Int64, of total: Int64?) {
        attempts.sent(count, of: total, number)
    }

    package func task(_ task: any NetworkTask, didCollect metrics: TransferMetrics) {
        attempts.collected(metrics, number)
    }

    package func taskMayLeave(_ task: any NetworkTask) -> Bool { attempts.mayLeave(number) }

    /// So much of the body of a download's request was sent.
    func sent(_ count: Int64, of total: Int64?) {
        attempts.sent(count, of: total, number)
    }

    /// That will be the head, if all goes well; it is told again in the end.
    func foresee(_ head: ResponseHead) {
        attempts.foresee(head, number)
    }

    /// Whether a file of that response must not come to its place.
    func refuses(_ head: ResponseHead) -> Bool {
        attempts.refuses(head, number)
    }

    /// So much of a file is on the disk.
    func saved(_ progress: DownloadProgress) {
        attempts.saved(progress, number)
    }
}

extension AttemptReceiver: HopWatcher, HopWatched {
    package var hopWatcher: (any HopWatcher)? { isObserved ? self : nil }

    package func hopBegins(_ request: NetworkRequest) { attempts.noteHop(.hopBegins(request), number) }

    package func sentBody() { attempts.noteHop(.bodySent, number) }

    package func left(_ head: ResponseHead) { attempts.noteHop(.left(head), number) }

    package func answered(_ head: ResponseHead) { attempts.noteHop(.received(head), number) }

    package func measured(_ metrics: TransferMetrics) { attempts.noteHop(.measured(metrics), number) }

    package func hopIsOver() { attempts.noteHop(.hopIsOver, number) }
}
