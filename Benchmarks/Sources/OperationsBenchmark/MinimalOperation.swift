// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The peer, which implements only what an asynchronous subclass of `Foundation.Operation` requires.
///
/// The class has no lock, result or handlers, and does not protect against races.
final class MinimalOperation: Operation, @unchecked Sendable {
    // Sendable: this is correct only because the benchmark uses each operation on one thread at a time.

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
