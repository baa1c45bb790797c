// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// An operation that ended without a result, as its dependents see it.
struct UnsuccessfulDependency {
    let failure: OperationFailure<any Error>
    let cause: CancellationCause

    /// Returns `nil` if the operation succeeded, or if it is of a kind that does not report failures.
    init?(_ operation: Operation) {
        let name = operation.displayName
        if let error = (operation as? ManagedOperation)?.failureAsError {
            failure = .failed(error)
            cause = .dependencyFailed(name, error)
        } else if operation.isCancelled {
            let upstreamCause = (operation as? ManagedOperation)?.cancellationCause
            failure = .cancelled(upstreamCause ?? .requested)
            cause = .dependencyCancelled(name, upstreamCause)
        } else {
            return nil
        }
    }

    /// Returns a verdict that makes the waiting operation fail with an error of its own type.
    func failing<ErrorType: Error>(
        with makeError: (OperationFailure<any Error>) -> ErrorType
    ) -> DependencyEdge.Verdict {
        ThreadNotes.current.worker?.reportChanges()
        let error = makeError(failure)
        return .fail { downstream in
            (downstream as? any FailableOperation)?.fail(with: error)
        }
    }
}

/// An operation that code can let fail without knowing its types.
protocol FailableOperation: ManagedOperation {
    func fail(with error: any Error)
}

extension TypedOperation: FailableOperation {
    func fail(with error: any Error) {
        guard let error = error as? ErrorType else { return }
        let box = OutcomeBox(error)
        if !failByRule(keeping: box) { box.free(as: ErrorType.self) }
    }
}
