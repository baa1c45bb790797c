// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Synchronization

/// Counts what ran, on whatever thread.
final class Counter: Sendable {
    private let count = Atomic(0)

    var value: Int { count.load(ordering: .acquiring) }

    /// Counts one more, or that many; returns the new count.
    @discardableResult
    func add(_ number: Int = 1) -> Int {
        count.wrappingAdd(number, ordering: .acquiringAndReleasing).newValue
    }
}

/// Ends the benchmark where a workload did not do its work: its time would mean nothing.
func check(_ value: Int, is expected: Int, _ what: String) {
    if value == expected { return }
    fatalError("\(what): \(value), and not \(expected)")
}

/// Does what nothing should refuse here.
func must<Result>(_ work: () throws -> Result) -> Result {
    do {
        return try work()
    } catch {
        fatalError("\(error)")
    }
}
