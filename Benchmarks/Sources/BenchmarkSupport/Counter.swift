// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import Synchronization

/// The default width of all queues, which is the same for OperationKit and its peers.
package let coreCount = ProcessInfo.processInfo.activeProcessorCount

/// A thread-safe counter of executed operations.
package final class Counter: Sendable {
    private let count = Atomic(0)

    package init() {}

    package var value: Int { count.load(ordering: .acquiring) }

    /// Adds one or more to the count, and returns the new count.
    @discardableResult
    package func add(_ number: Int = 1) -> Int {
        count.wrappingAdd(number, ordering: .acquiringAndReleasing).newValue
    }
}

/// Ends the benchmark if a workload did not complete, because its time would be meaningless.
package func check(_ value: Int, is expected: Int, _ what: String) {
    if value == expected { return }
    fatalError("\(what): \(value), and not \(expected)")
}

/// Runs work that must not fail in a benchmark, and returns its result.
package func must<Result>(_ work: () throws -> Result) -> Result {
    do {
        return try work()
    } catch {
        fatalError("\(error)")
    }
}

/// Runs a task on Swift's cooperative thread pool and waits until the task ends.
package func withTask(_ work: @escaping @Sendable () async -> Void) {
    let end = DispatchSemaphore(value: 0)
    Task.detached {
        await work()
        end.signal()
    }
    end.wait()
}
