// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import OperationCore

/// A child that only increments a counter.
final class CountingOperation: SyncOperation<Int, Never>, @unchecked Sendable {
    // Sendable: the counter is Sendable.

    private let counter: Counter

    init(_ counter: Counter) {
        self.counter = counter
    }

    override func main() { finish(withResult: counter.add()) }
}
