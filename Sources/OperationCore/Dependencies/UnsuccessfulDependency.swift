// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// An operation that ended without a result, as those see it that waited for it.
struct UnsuccessfulDependency {
    let failure: OperationFailure<any Error>
    let cause: CancellationCause

    /// Nil if the operation succeeded, or if it is of a kind that cannot say.
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

    /// Lets the operation that waited fail with an error of its own type.
    func failing<ErrorType: Error>(
        with makeError: (OperationFailure<any Error>) -> ErrorType
    ) -> DependencyEdge.Verdict {
        WorkerSeat.flushCurrent()
        let error = makeError(failure)
        return .fail { downstream in
            (downstream as? any FailableOperation)?.fail(with: error)
        }
    }
}

/// The way to let an operation fail whose types are not known where it is decided.
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
