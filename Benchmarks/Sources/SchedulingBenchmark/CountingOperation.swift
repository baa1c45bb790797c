// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import OperationCore

/// Ours: a typed result, which is the count after it counted itself.
final class CountingOperation: SyncOperation<Int, Never>, @unchecked Sendable {
    // Sendable: the counter is.

    private let counter: Counter

    init(_ counter: Counter) {
        self.counter = counter
    }

    override func main() { finish(withResult: counter.add()) }
}

/// The peer: the least that a subclass of `Foundation.Operation` must do, without a result that others can read safely.
///
/// In an `OperationQueue` it is faster than a `BlockOperation`, which has an array of blocks and a lock of its own.
final class PeerOperation: Operation, @unchecked Sendable {
    // Sendable: the counter is, and `count` is written once, before the operation ends.

    private let counter: Counter
    private(set) var count = 0

    init(_ counter: Counter) {
        self.counter = counter
    }

    override func main() { count = counter.add() }
}
