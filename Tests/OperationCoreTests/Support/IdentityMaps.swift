// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import Testing

/// What `OPERATION_MAPS` does to queues and groups of the package, for queues of Foundation: see `IdentityMaps` in the sources.
private let mapDepth = ProcessInfo.processInfo.environment["OPERATION_MAPS"].flatMap { Int($0) } ?? 0

/// Whether each operation is replaced by one that is mapped from it.
let isMapping = mapDepth > 0

extension OperationQueue {
    func addOperation<ResultType, ErrorType>(_ operation: TypedOperation<ResultType, ErrorType>) {
        let mapped = (0..<mapDepth).reduce(operation) { operation, _ in operation.mapOutcome { $0 } }
        addOperation(mapped as Operation)
    }
}

extension Trait where Self == ConditionTrait {
    /// For tests that compare the operations which a queue or `dependencies` shows with those that were given.
    static var comparesObjects: Self {
        .disabled(if: isMapping, "In this mode the queue or the edge was given mapped operations.")
    }
}
