// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The peer: the least that an asynchronous subclass of `Foundation.Operation` must do by hand.
///
/// It has no lock, no result, no handlers and no protection against any race.
final class MinimalOperation: Operation, @unchecked Sendable {
    // Sendable: only as long as nobody races, which is all that can be said of it.

    private var isRunning = false
    private var isDone = false

    override var isAsynchronous: Bool { true }
    override var isExecuting: Bool { isRunning }
    override var isFinished: Bool { isDone }

    override func start() {
        willChangeValue(forKey: "isExecuting")
        isRunning = true
        didChangeValue(forKey: "isExecuting")
        main()
    }

    override func main() {}

    func finish() {
        willChangeValue(forKey: "isExecuting")
        willChangeValue(forKey: "isFinished")
        isRunning = false
        isDone = true
        didChangeValue(forKey: "isExecuting")
        didChangeValue(forKey: "isFinished")
    }
}
