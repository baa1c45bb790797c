// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import OperationCore

extension OperationQueue {
    /// Creates a peer of a `QueueManager`, with Foundation's default width if the width is nil.
    convenience init(width: Int?) {
        self.init()
        if let width { maxConcurrentOperationCount = width }
    }
}

/// Runs work with a `QueueManager` and waits until the queue is empty.
func withQueue(width: Int? = coreCount, _ work: (QueueManager) throws -> Void) {
    let queue = QueueManager("benchmark", width: width)
    must {
        try work(queue)
        try queue.waitUntilAllFinished()
    }
}

/// Runs work with an `OperationQueue` and waits until the queue is empty.
func withPeerQueue(width: Int? = coreCount, _ work: (OperationQueue) -> Void) {
    let queue = OperationQueue(width: width)
    work(queue)
    queue.waitUntilAllOperationsAreFinished()
}

/// Runs work with a concurrent Dispatch queue and waits for a barrier, which is the cheapest way to detect that the
/// queue is empty.
func withDispatchQueue(_ work: (DispatchQueue) -> Void) {
    let queue = DispatchQueue(label: "benchmark", attributes: .concurrent)
    work(queue)
    queue.sync(flags: .barrier) {}
}
