// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import OperationCore

/// The operation of OperationKit, whose typed result is the count after the operation has incremented the counter.
final class CountingOperation: SyncOperation<Int, Never>, @unchecked Sendable {
    // Sendable: the counter is Sendable.

    private let counter: Counter

    init(_ counter: Counter) {
        self.counter = counter
    }

    override func main() { finish(withResult: counter.add()) }
}

/// The peer, which is a minimal subclass of `Foundation.Operation` without a result that other threads can read safely.
///
/// In an `OperationQueue`, the class is faster than a `BlockOperation`, which has an array of blocks and its own lock.
final class PeerOperation: Operation, @unchecked Sendable {
    // Sendable: the counter is Sendable, and `count` is written once, before the operation ends.

    private let counter: Counter
    private(set) var count = 0

    init(_ counter: Counter) {
        self.counter = counter
    }

    override func main() { count = counter.add() }
}
