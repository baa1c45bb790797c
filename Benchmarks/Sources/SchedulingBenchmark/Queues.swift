// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import OperationCore

extension OperationQueue {
    /// A peer of a queue of ours; nil stands for Foundation's default width.
    convenience init(width: Int?) {
        self.init()
        if let width { maxConcurrentOperationCount = width }
    }
}

/// Runs work with a queue of ours until nothing is left in it.
func withQueue(width: Int? = coreCount, _ work: (QueueManager) throws -> Void) {
    let queue = QueueManager("benchmark", width: width)
    must {
        try work(queue)
        try queue.waitUntilAllFinished()
    }
}

/// Runs work with Foundation's until nothing is left in it.
func withPeerQueue(width: Int? = coreCount, _ work: (OperationQueue) -> Void) {
    let queue = OperationQueue(width: width)
    work(queue)
    queue.waitUntilAllOperationsAreFinished()
}

/// Runs work with a concurrent Dispatch queue until nothing is left in it: a barrier is the cheapest way to know.
func withDispatchQueue(_ work: (DispatchQueue) -> Void) {
    let queue = DispatchQueue(label: "benchmark", attributes: .concurrent)
    work(queue)
    queue.sync(flags: .barrier) {}
}
