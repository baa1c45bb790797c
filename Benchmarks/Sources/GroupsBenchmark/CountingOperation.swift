// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import BenchmarkSupport
import OperationCore

/// A child that does next to nothing.
final class CountingOperation: SyncOperation<Int, Never>, @unchecked Sendable {
    // Sendable: the counter is.

    private let counter: Counter

    init(_ counter: Counter) {
        self.counter = counter
    }

    override func main() { finish(withResult: counter.add()) }
}
