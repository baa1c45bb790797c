// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import Synchronization

/// As many as run at once; the same on all sides.
let coreCount = ProcessInfo.processInfo.activeProcessorCount

/// Counts what ran, on whatever thread.
final class Counter: Sendable {
    private let count = Atomic(0)

    var value: Int { count.load(ordering: .acquiring) }

    @discardableResult
    func add(_ number: Int = 1) -> Int {
        count.wrappingAdd(number, ordering: .acquiringAndReleasing).newValue
    }
}

/// A child that does next to nothing.
final class CountingOperation: SyncOperation<Int, Never>, @unchecked Sendable {
    // Sendable: the counter is.

    private let counter: Counter

    init(_ counter: Counter) {
        self.counter = counter
    }

    override func main() { finish(withResult: counter.add()) }
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

/// Runs a task on the threads of Swift's own pool and waits for it.
func withTask(_ work: @escaping @Sendable () async -> Void) {
    let end = DispatchSemaphore(value: 0)
    Task.detached {
        await work()
        end.signal()
    }
    end.wait()
}
