// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// What was asked, and where.
struct Asked {
    let expected: String
    let fileID: String
    let line: Int

    init(_ expected: String, _ fileID: String, _ line: Int) {
        (self.expected, self.fileID, self.line) = (expected, fileID, line)
    }
}

extension TypedOperation {
    /// How the operation ended, or why that is not known.
    enum End {
        case outcome(OperationOutcome<ResultType, ErrorType>)
        case notYet
        case notWithin(Duration)
        /// The test's own task was cancelled, by its time limit as a rule.
        case notAwaited
    }

    /// How it ended, if it did.
    final var end: End { outcome.map { .outcome($0) } ?? .notYet }

    /// How it ended, as soon as it has, and no later than that.
    ///
    /// Neither the end of that time nor that of the test's task cancels the operation.
    final func end(within limit: Duration) async -> End {
        if let outcome { return .outcome(outcome) }
        let answer = FirstAnswer<End>()
        let timer = SystemClock.shared.schedule(after: limit) { answer.give(.notWithin(limit)) }
        defer { timer.cancel() }
        // And not by awaiting it: whoever gave up to wait would keep the operation until it ends, if it ever does.
        let observation = addObserver(isWaiter: true) { operation in
            guard let outcome = (operation as? TypedOperation)?.outcome else { return }
            answer.give(.outcome(outcome))
        }
        defer { observation.cancel() }
        return await answer.valueUnlessCancelled(or: .notAwaited)
    }

    final func success(_ end: End, _ asked: Asked) throws(UnmetExpectation) -> ResultType {
        if case .outcome(.success(let result)) = end { return result }
        throw unmet(end, asked)
    }

    final func failure(_ end: End, _ asked: Asked) throws(UnmetExpectation) -> ErrorType {
        if case .outcome(.failure(let error)) = end { return error }
        throw unmet(end, asked)
    }

    final func cancellation(
        _ end: End, _ code: CancellationCause.Code?, _ asked: Asked
    ) throws(UnmetExpectation) -> CancellationCause {
        if case .outcome(.cancelled(let cause)) = end, code == nil || code == cause.code { return cause }
        throw unmet(end, asked)
    }

    final func unmet(_ end: End, _ asked: Asked) -> UnmetExpectation {
        var details: [String] = []
        if let network = self as? any AnyNetworkOperation, network.attemptCount > 0 {
            details.append("attempts: \(network.story)")
        }
        return UnmetExpectation(
            "\(Told.subject(self)) did not end as expected", expected: asked.expected, found: found(end),
            details: details, fileID: asked.fileID, line: asked.line)
    }

    private func found(_ end: End) -> String {
        switch end {
        case .outcome(.success(let result)): return "success \(Told.value(result))"
        case .outcome(.failure(let error)): return "failure \(Told.error(error))"
        case .outcome(.cancelled(let cause)): return "cancelled (\(cause.code)), \(cause.message)"
        case .notYet: return "no end, \(standing)"
        case .notWithin(let limit): return "no end within \(Told.time(limit)), \(standing)"
        case .notAwaited: return "no end before the test's own task was cancelled, \(standing)"
        }
    }

    /// What it does in the place of ending.
    private var standing: String {
        if let waitReason { return "it is \(waitReason)" }
        switch state {
        case .notStarted where !isReady: return "it waits for its dependencies, or for its admission"
        case .notStarted: return "it was not begun; start it, or add it to a queue"
        case .suspended: return "it is suspended"
        default: return "it is \(state)"
        }
    }
}
