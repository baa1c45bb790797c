// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import Testing

/// The effect of `OPERATION_MAPS` on Foundation queues.
///
/// For queues and groups of the package, see `identityMapDepth` in the sources.
private let mapDepth = ProcessInfo.processInfo.environment["OPERATION_MAPS"].flatMap { Int($0) } ?? 0

/// Whether each operation is replaced by an operation that is mapped from it.
let isMapping = mapDepth > 0

extension OperationQueue {
    func addOperation<ResultType, ErrorType>(_ operation: TypedOperation<ResultType, ErrorType>) {
        let mapped = (0..<mapDepth).reduce(operation) { operation, _ in operation.mapOutcome { $0 } }
        addOperation(mapped as Operation)
    }
}

extension Trait where Self == ConditionTrait {
    /// For tests that compare the operations in a queue or in `dependencies` with the operations that were added.
    static var comparesObjects: Self {
        .disabled(if: isMapping, "In this mode the queue or the edge was given mapped operations.")
    }
}
