// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import Synchronization

/// As many as run at once where a workload does not ask for something else; the same on all sides.
package let coreCount = ProcessInfo.processInfo.activeProcessorCount

/// Counts what ran, on whatever thread.
package final class Counter: Sendable {
    private let count = Atomic(0)

    package init() {}

    package var value: Int { count.load(ordering: .acquiring) }

    /// Counts one more, or that many; returns the new count.
    @discardableResult
    package func add(_ number: Int = 1) -> Int {
        count.wrappingAdd(number, ordering: .acquiringAndReleasing).newValue
    }
}

/// Ends the benchmark where a workload did not do its work: its time would mean nothing.
package func check(_ value: Int, is expected: Int, _ what: String) {
    if value == expected { return }
    fatalError("\(what): \(value), and not \(expected)")
}

/// Does what nothing should refuse here.
package func must<Result>(_ work: () throws -> Result) -> Result {
    do {
        return try work()
    } catch {
        fatalError("\(error)")
    }
}

/// Runs a task on the threads of Swift's own pool and waits for it.
package func withTask(_ work: @escaping @Sendable () async -> Void) {
    let end = DispatchSemaphore(value: 0)
    Task.detached {
        await work()
        end.signal()
    }
    end.wait()
}
