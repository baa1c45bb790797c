// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationNetworking

extension AnyNetworkOperation {
    /// A one-line description of the operation's attempts, such as `503 → 1 s → connectionLost → 2 s → success`.
    ///
    /// An attempt that failed because of its response status appears as the status code. Any other failed attempt
    /// appears as the error code. After each attempt, the text contains the pause or wait that followed, if any. The
    /// text ends with `success`, `canceled` or the last failed attempt, or with `…` if the operation is still in
    /// progress. In a test, compare the description with the expected text:
    ///
    /// ```swift
    /// import OperationNetworking
    /// import OperationTestKit
    /// import Testing
    ///
    /// func isSentThreeTimes(_ operation: NetworkDataOperation<Int>) async throws {
    ///     try await operation.expectSuccess()
    ///     #expect(operation.story == "503 → 1 s → connectionLost → 2 s → success")
    /// }
    /// ```
    ///
    /// The description contains the individual attempts only if the operation has `retry` settings or another policy
    /// that can start another attempt, such as an `OfflinePolicy`.
    public var story: String {
        let records = failedAttempts
        var parts = records.flatMap { record in
            [
                Described.failure(record.code, record.status), record.pause.map(Described.time),
                record.putAside?.description,
            ].compactMap(\.self)
        }
        let isAgain = records.last.map { $0.pause != nil || $0.putAside != nil } ?? true
        switch anyOutcome {
        case .success?: parts.append("success")
        // The last record is the attempt with the error, unless there is no record or something else failed.
        case .failure(let error)?: if isAgain { parts.append(Described.failure(error.code, error.status)) }
        case .cancelled?: parts.append("canceled")
        case nil: if isAgain, attemptCount > 0 { parts.append("…") }
        }
        return parts.joined(separator: " → ")
    }
}
