// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Waits until something is so that nobody tells of, by asking again and again: where there is no gate and no event.
///
/// ```swift
/// import OperationNetworking
/// import OperationTestKit
///
/// func waitsForTheNetwork(_ operation: NetworkDataOperation<Int>) async throws {
///     operation.start()
///     try await waitUntil("it waits for the network") { operation.waitReason?.kind == .network }
/// }
/// ```
///
/// It gives way to other tasks in between, and throws an ``UnmetExpectation`` after that time, or where its own task is
/// cancelled.
public func waitUntil(
    _ what: String, within limit: Duration = .seconds(60), fileID: String = #fileID, line: Int = #line,
    _ isSo: @Sendable () -> Bool
) async throws(UnmetExpectation) {
    let end = ContinuousClock.now + limit
    while !isSo() {
        guard !Task.isCancelled, ContinuousClock.now < end else {
            let found = Task.isCancelled ? "not so when the test's own task was cancelled" : "not so"
            throw UnmetExpectation(
                "What was waited for did not come", expected: "\(what), within \(Told.time(limit))", found: found,
                fileID: fileID, line: line)
        }
        await Task.yield()
    }
}
