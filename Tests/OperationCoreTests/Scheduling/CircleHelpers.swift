// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit

typealias Closure = ClosureOperation<Int, any Error>
typealias Body = TaskOperation<Int, any Error>

/// Returns whether the error reports a wait that passes through these operations.
func isCircle(_ error: any Error, _ names: String...) -> Bool {
    let text = "\(error)"
    return text.contains("waitsForItself") && text.contains(names.joined(separator: " → "))
}

/// Creates an operation whose body records the error that it catches and then returns 1.
func blocking(
    _ name: String, _ errors: EventRecorder<any Error>, _ body: @escaping @Sendable () throws -> Void
) -> Closure {
    Closure {
        do { try body() } catch { errors.record(error) }
        return 1
    }.named(name)
}
