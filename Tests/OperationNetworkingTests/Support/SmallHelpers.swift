// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Records an issue at the line of the call, for a `guard` that leaves the test.
func unmet(_ expectation: String, location: SourceLocation = #_sourceLocation) {
    Issue.record(Comment(rawValue: expectation), sourceLocation: location)
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

extension SeededGenerator {
    /// Returns random texts, each of which consists of at most `most` of the given pieces.
    static func texts(_ count: Int, of pieces: [String], most: Int, seed: UInt64) -> [String] {
        var generator = SeededGenerator(seed: seed)
        return (0..<count).map { _ in
            let length = Int.random(in: 0...most, using: &generator)
            return (0..<length).compactMap { _ in pieces.randomElement(using: &generator) }.joined()
        }
    }
}

extension ManagedOperation {
    func named(_ name: String) -> Self {
        self.name = name
        return self
    }
}

/// Returns a value with a change.
func with<Value>(_ value: Value, _ change: (inout Value) throws -> Void) rethrows -> Value {
    var value = value
    try change(&value)
    return value
}

extension ManagedOperation {
    /// Starts the operation and waits for its end, whatever the outcome.
    func startAndEnd() async {
        start()
        await ended()
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
