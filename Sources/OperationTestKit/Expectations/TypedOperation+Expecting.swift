// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// How an operation ended, as a test expects it.
///
/// Each of these awaits the outcome, for a minute at most, and does not start the operation. In code that cannot await, the
/// same names look at once at how it ended. What is thrown is an ``UnmetExpectation``.
///
/// ```swift
/// import OperationNetworking
/// import OperationTestKit
///
/// func theSongsAreThere(_ base: NetworkBase) async throws {
///     let songs = base.get("songs", as: [String].self)
///     songs.start()
///     try await songs.expectSuccess(["One", "Two"])
///
///     let missing = base.get("nothing", as: [String].self)
///     missing.start()
///     let error = try await missing.expectFailure(.unacceptableStatus)
///     print(error.status ?? 0)  // 404
/// }
/// ```
extension TypedOperation {
    /// Expects a result, and returns it.
    @discardableResult
    public final func expectSuccess(
        within limit: Duration = .seconds(60), fileID: String = #fileID, line: Int = #line
    ) async throws(UnmetExpectation) -> ResultType {
        try success(await end(within: limit), Asked("a success", fileID, line))
    }

    /// Expects a result now, and returns it.
    @discardableResult
    public final func expectSuccess(
        fileID: String = #fileID, line: Int = #line
    ) throws(UnmetExpectation) -> ResultType {
        try success(end, Asked("a success", fileID, line))
    }

    /// Expects a failure, and returns its error.
    @discardableResult
    public final func expectFailure(
        within limit: Duration = .seconds(60), fileID: String = #fileID, line: Int = #line
    ) async throws(UnmetExpectation) -> ErrorType {
        try failure(await end(within: limit), Asked("a failure", fileID, line))
    }

    /// Expects a failure now, and returns its error.
    @discardableResult
    public final func expectFailure(
        fileID: String = #fileID, line: Int = #line
    ) throws(UnmetExpectation) -> ErrorType {
        try failure(end, Asked("a failure", fileID, line))
    }

    /// Expects a cancellation, and returns its cause.
    ///
    /// The code is the kind of the cause; any will do if it is nil.
    @discardableResult
    public final func expectCancelled(
        _ code: CancellationCause.Code? = nil, within limit: Duration = .seconds(60), fileID: String = #fileID,
        line: Int = #line
    ) async throws(UnmetExpectation) -> CancellationCause {
        try cancellation(await end(within: limit), code, Asked(Self.cancelled(code), fileID, line))
    }

    /// Expects a cancellation now, and returns its cause.
    @discardableResult
    public final func expectCancelled(
        _ code: CancellationCause.Code? = nil, fileID: String = #fileID, line: Int = #line
    ) throws(UnmetExpectation) -> CancellationCause {
        try cancellation(end, code, Asked(Self.cancelled(code), fileID, line))
    }

    private static func cancelled(_ code: CancellationCause.Code?) -> String {
        code.map { "cancelled (\($0))" } ?? "a cancellation"
    }
}

extension TypedOperation where ResultType: Equatable {
    /// Expects this result.
    public final func expectSuccess(
        _ result: ResultType, within limit: Duration = .seconds(60), fileID: String = #fileID, line: Int = #line
    ) async throws(UnmetExpectation) {
        let end = await end(within: limit)
        try expect(result, end, Asked("success \(Told.value(result))", fileID, line))
    }

    /// Expects this result now.
    public final func expectSuccess(
        _ result: ResultType, fileID: String = #fileID, line: Int = #line
    ) throws(UnmetExpectation) {
        try expect(result, end, Asked("success \(Told.value(result))", fileID, line))
    }

    private func expect(_ result: ResultType, _ end: End, _ asked: Asked) throws(UnmetExpectation) {
        guard try success(end, asked) != result else { return }
        throw unmet(end, asked)
    }
}

extension TypedOperation where ErrorType: Equatable {
    /// Expects a failure with this error.
    public final func expectFailure(
        _ error: ErrorType, within limit: Duration = .seconds(60), fileID: String = #fileID, line: Int = #line
    ) async throws(UnmetExpectation) {
        let end = await end(within: limit)
        try expect(error, end, Asked("failure \(Told.error(error))", fileID, line))
    }

    /// Expects a failure with this error now.
    public final func expectFailure(
        _ error: ErrorType, fileID: String = #fileID, line: Int = #line
    ) throws(UnmetExpectation) {
        try expect(error, end, Asked("failure \(Told.error(error))", fileID, line))
    }

    private func expect(_ error: ErrorType, _ end: End, _ asked: Asked) throws(UnmetExpectation) {
        guard try failure(end, asked) != error else { return }
        throw unmet(end, asked)
    }
}
