// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit
import Testing

/// Records an issue at the line of the call, for a `guard` that leaves the test.
func unmet(_ expectation: String, location: SourceLocation = #_sourceLocation) {
    Issue.record(Comment(rawValue: expectation), sourceLocation: location)
}

/// Returns the error that the closure throws, or `nil` if it returns.
func thrown<Failure: Error>(_ body: () throws(Failure) -> Void) -> Failure? {
    do throws(Failure) {
        try body()
        return nil
    } catch {
        return error
    }
}

extension Locked<Int> {
    /// Adds one, and returns the sum.
    borrowing func next() -> Int {
        withLock { number in
            number += 1
            return number
        }
    }
}

extension Gate {
    /// Waits until the task is canceled, which opens this gate.
    ///
    /// - Parameter began: A gate that is opened when a cancellation would open this one.
    func openedByCancellation(afterOpening began: Gate? = nil) async {
        await withTaskCancellationHandler {
            began?.open()
            await passage()
        } onCancel: {
            open()
        }
    }
}

extension QueueUpdate {
    /// The snapshot, or `nil` if the update is an event.
    var snapshot: QueueSnapshot? {
        switch self {
        case .snapshot(let snapshot), .missed(_, let snapshot): snapshot
        case .event: nil
        }
    }

    /// The event, or `nil` if the update is a snapshot.
    var event: QueueEvent? {
        if case .event(let event) = self { event } else { nil }
    }
}
