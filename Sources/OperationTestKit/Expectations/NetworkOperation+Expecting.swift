// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore
import OperationNetworking

extension TypedOperation where ErrorType == NetworkError {
    /// Expects a failure of this kind, and returns the error.
    ///
    /// The status is that of the answer; any will do, or none, if it is nil.
    @discardableResult
    public final func expectFailure(
        _ code: NetworkError.Code, status: Int? = nil, within limit: Duration = .seconds(60), fileID: String = #fileID,
        line: Int = #line
    ) async throws(UnmetExpectation) -> NetworkError {
        let end = await end(within: limit)
        return try failure(end, code, status, Asked(Self.failure(code, status), fileID, line))
    }

    /// Expects a failure of this kind now, and returns the error.
    @discardableResult
    public final func expectFailure(
        _ code: NetworkError.Code, status: Int? = nil, fileID: String = #fileID, line: Int = #line
    ) throws(UnmetExpectation) -> NetworkError {
        try failure(end, code, status, Asked(Self.failure(code, status), fileID, line))
    }

    private static func failure(_ code: NetworkError.Code, _ status: Int?) -> String {
        "failure \(code)\(status.map { " \($0)" } ?? "")"
    }

    private func failure(
        _ end: End, _ code: NetworkError.Code, _ status: Int?, _ asked: Asked
    ) throws(UnmetExpectation) -> NetworkError {
        let error = try failure(end, asked)
        guard error.code == code, status == nil || status == error.status else { throw unmet(end, asked) }
        return error
    }
}
