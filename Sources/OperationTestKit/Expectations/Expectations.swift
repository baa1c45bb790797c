// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// Methods that check how an operation ended.
///
/// Each method waits for the outcome, but does not start the operation. If the operation does not end as expected, the
/// method throws an ``UnmetExpectation``. In synchronous code, compare the operation's `outcome` instead.
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
    /// Waits for the operation to succeed and returns its result.
    ///
    /// - Parameters:
    ///   - limit: The maximum time to wait. The default is one minute.
    ///   - fileID: The source file that the error reports. The default is the caller's file.
    ///   - line: The source line that the error reports. The default is the caller's line.
    /// - Throws: An ``UnmetExpectation`` if the operation does not succeed within the limit, or if the current task is
    ///   canceled.
    @discardableResult
    public final func expectSuccess(
        within limit: Duration = .seconds(60), fileID: String = #fileID, line: Int = #line
    ) async throws(UnmetExpectation) -> ResultType {
        try success(await end(within: limit), Asked(expected: "a success", fileID: fileID, line: line))
    }

    /// Waits for the operation to fail and returns its error.
    ///
    /// - Parameters:
    ///   - limit: The maximum time to wait. The default is one minute.
    ///   - fileID: The source file that the error reports. The default is the caller's file.
    ///   - line: The source line that the error reports. The default is the caller's line.
    /// - Throws: An ``UnmetExpectation`` if the operation does not fail within the limit, or if the current task is
    ///   canceled.
    @discardableResult
    public final func expectFailure(
        within limit: Duration = .seconds(60), fileID: String = #fileID, line: Int = #line
    ) async throws(UnmetExpectation) -> ErrorType {
        try failure(await end(within: limit), Asked(expected: "a failure", fileID: fileID, line: line))
    }

    /// Waits for the operation to be canceled and returns the cause.
    ///
    /// - Parameters:
    ///   - code: The expected code of the cause. The default is `nil`, which accepts any code.
    ///   - limit: The maximum time to wait. The default is one minute.
    ///   - fileID: The source file that the error reports. The default is the caller's file.
    ///   - line: The source line that the error reports. The default is the caller's line.
    /// - Throws: An ``UnmetExpectation`` if the operation is not canceled with this code within the limit, or if the
    ///   current task is canceled.
    @discardableResult
    public final func expectCancelled(
        _ code: CancellationCause.Code? = nil, within limit: Duration = .seconds(60), fileID: String = #fileID,
        line: Int = #line
    ) async throws(UnmetExpectation) -> CancellationCause {
        let expected = code.map { "canceled (\($0))" } ?? "a cancellation"
        let asked = Asked(expected: expected, fileID: fileID, line: line)
        return try cancellation(await end(within: limit), code, asked)
    }
}

extension TypedOperation where ResultType: Equatable {
    /// Waits for the operation to succeed with a given result.
    ///
    /// - Parameters:
    ///   - result: The expected result.
    ///   - limit: The maximum time to wait. The default is one minute.
    ///   - fileID: The source file that the error reports. The default is the caller's file.
    ///   - line: The source line that the error reports. The default is the caller's line.
    /// - Throws: An ``UnmetExpectation`` if the operation does not succeed with this result within the limit, or if the
    ///   current task is canceled.
    public final func expectSuccess(
        _ result: ResultType, within limit: Duration = .seconds(60), fileID: String = #fileID, line: Int = #line
    ) async throws(UnmetExpectation) {
        let end = await end(within: limit)
        let asked = Asked(expected: "success \(Described.value(result))", fileID: fileID, line: line)
        if try success(end, asked) != result { throw unmet(end, asked) }
    }
}

extension TypedOperation where ErrorType: Equatable {
    /// Waits for the operation to fail with a given error.
    ///
    /// - Parameters:
    ///   - error: The expected error.
    ///   - limit: The maximum time to wait. The default is one minute.
    ///   - fileID: The source file that the error reports. The default is the caller's file.
    ///   - line: The source line that the error reports. The default is the caller's line.
    /// - Throws: An ``UnmetExpectation`` if the operation does not fail with this error within the limit, or if the
    ///   current task is canceled.
    public final func expectFailure(
        _ error: ErrorType, within limit: Duration = .seconds(60), fileID: String = #fileID, line: Int = #line
    ) async throws(UnmetExpectation) {
        let end = await end(within: limit)
        let asked = Asked(expected: "failure \(Described.error(error))", fileID: fileID, line: line)
        if try failure(end, asked) != error { throw unmet(end, asked) }
    }
}

extension TypedOperation where ErrorType == NetworkError {
    /// Waits for the operation to fail with a given error code and returns its error.
    ///
    /// - Parameters:
    ///   - code: The expected error code.
    ///   - status: The expected status code of the response. The default is `nil`, which accepts any status code and an
    ///     error without a response.
    ///   - limit: The maximum time to wait. The default is one minute.
    ///   - fileID: The source file that the error reports. The default is the caller's file.
    ///   - line: The source line that the error reports. The default is the caller's line.
    /// - Throws: An ``UnmetExpectation`` if the operation does not fail with this error code and status code within the
    ///   limit, or if the current task is canceled.
    @discardableResult
    public final func expectFailure(
        _ code: NetworkError.Code, status: Int? = nil, within limit: Duration = .seconds(60), fileID: String = #fileID,
        line: Int = #line
    ) async throws(UnmetExpectation) -> NetworkError {
        let end = await end(within: limit)
        let expected = "failure \(code)\(status.map { " \($0)" } ?? "")"
        let asked = Asked(expected: expected, fileID: fileID, line: line)
        let error = try failure(end, asked)
        guard error.code == code, status == nil || status == error.status else { throw unmet(end, asked) }
        return error
    }
}

/// An expectation and its position in the source.
struct Asked {
    let expected: String
    let fileID: String
    let line: Int
}

extension TypedOperation {
    /// The end of an operation, or the reason why it is not known.
    enum End {
        case outcome(OperationOutcome<ResultType, ErrorType>)
        case notWithin(Duration)
        /// The task of the test was canceled, usually by a time limit.
        case notAwaited
    }

    /// Waits for the end of the operation, but no longer than a limit.
    ///
    /// Neither the limit nor a cancellation of the test's task cancels the operation.
    final func end(within limit: Duration) async -> End {
        if let outcome { return .outcome(outcome) }
        let answer = FirstAnswer<End>()
        let timer = SystemClock.shared.schedule(after: limit) { answer.give(.notWithin(limit)) }
        defer { timer.cancel() }
        // An await would keep the operation alive until its end, even after the test has stopped waiting.
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
            "\(Described.subject(self)) did not end as expected", expected: asked.expected, found: found(end),
            details: details, fileID: asked.fileID, line: asked.line)
    }

    private func found(_ end: End) -> String {
        switch end {
        case .outcome(.success(let result)): return "success \(Described.value(result))"
        case .outcome(.failure(let error)): return "failure \(Described.error(error))"
        case .outcome(.cancelled(let cause)): return "canceled (\(cause.code)), \(cause.message)"
        case .notWithin(let limit): return "no end within \(Described.time(limit)), \(standing)"
        case .notAwaited: return "no end before the test's own task was canceled, \(standing)"
        }
    }

    /// A description of the operation's state if it has not ended.
    private var standing: String {
        if let waitReason { return "it is \(waitReason)" }
        switch state {
        case .notStarted where !isReady: return "it waits for its dependencies or for its admission"
        case .notStarted: return "it was not started; start it, or add it to a queue"
        case .suspended: return "it is suspended"
        default: return "it is \(state)"
        }
    }
}

/// An error that describes an unmet expectation and the actual result.
///
/// The `expect` methods of operations and of ``PlaybackSession`` throw this error, as do
/// ``waitUntil(_:within:fileID:line:_:)`` and ``Gate/passage(within:fileID:line:)``. If a test does not catch the
/// error, the test fails and its report contains the error's text:
///
/// ```
/// GET https://example.com/songs did not end as expected, SongTests.swift:31
///   expected: failure timedOut
///   found:    failure unacceptableStatus 503, The server answered 503 …
///   attempts: 503 → 1 s → 503
/// ```
public struct UnmetExpectation: Error, Hashable, Sendable {
    /// A summary of the problem, such as `GET https://example.com/songs did not end as expected`.
    package let subject: String
    /// A description of the expected result.
    package let expected: String
    /// A description of the actual result.
    package let found: String
    /// Additional lines of information, such as `attempts: 503 → 1 s → 503`.
    package let details: [String]
    /// The file and line of the expectation, such as `SongTests.swift:31`.
    package let place: String

    /// Creates an error for an expectation that you check in your own code.
    package init(
        _ subject: String, expected: String, found: String, details: [String] = [], fileID: String = #fileID,
        line: Int = #line
    ) {
        (self.subject, self.expected, self.found, self.details) = (subject, expected, found, details)
        place = "\(fileID.split(separator: "/").last ?? ""):\(line)"
    }
}

extension UnmetExpectation: CustomStringConvertible, LocalizedError {
    /// The text of the error, with the expected and the actual result on separate lines.
    public var description: String {
        let lines = ["expected: \(expected)", "found:    \(found)"] + details
        return "\(subject), \(place)\n" + lines.map { "  \($0)" }.joined(separator: "\n")
    }

    /// The text of the error, which is equal to ``description``.
    public var errorDescription: String? { description }
}

/// Checks a condition repeatedly until it is true.
///
/// Use this function only for a condition that no ``Gate`` or event reports.
///
/// ```swift
/// import OperationNetworking
/// import OperationTestKit
///
/// func waitsForTheNetwork(_ operation: NetworkDataOperation<Int>) async throws {
///     operation.start()
///     try await waitUntil("it waits for the network") {
///         operation.waitReason?.kind == .network
///     }
/// }
/// ```
///
/// The function yields to other tasks between checks.
///
/// - Parameters:
///   - what: A description of the condition to include in the error.
///   - limit: The maximum time to wait. The default is one minute.
///   - fileID: The source file that the error reports. The default is the caller's file.
///   - line: The source line that the error reports. The default is the caller's line.
///   - isSo: A closure that returns whether the condition is true. The function might call the closure on any thread.
/// - Throws: An ``UnmetExpectation`` if the condition is still false when the limit is reached or the current task is
///   canceled.
public func waitUntil(
    _ what: String, within limit: Duration = .seconds(60), fileID: String = #fileID, line: Int = #line,
    _ isSo: @Sendable () -> Bool
) async throws(UnmetExpectation) {
    let end = ContinuousClock.now + limit
    while !isSo() {
        guard !Task.isCancelled, ContinuousClock.now < end else {
            let found = Task.isCancelled ? "false when the test's own task was canceled" : "false"
            throw UnmetExpectation(
                "The condition did not become true", expected: "\(what), within \(Described.time(limit))", found: found,
                fileID: fileID, line: line)
        }
        await Task.yield()
    }
}

/// Descriptions of values in the texts of expectations.
package enum Described {
    private static let longest = 400

    /// Returns the name of an operation, its request or its type.
    static func subject(_ operation: ManagedOperation) -> String {
        if let name = operation.name, !name.isEmpty { return name }
        if let request = (operation as? any AnyNetworkOperation)?.request { return "\(request.summary)" }
        return "\(type(of: operation))"
    }

    static func value(_ value: Any) -> String {
        let text = value is String ? "\"\(value)\"" : "\(value)"
        return text.count > longest ? "\(text.prefix(longest))… (\(text.count) characters)" : text
    }

    /// Returns the code, the status and the message of an error.
    static func error(_ error: any Error) -> String {
        guard let error = error as? NetworkError else { return value(error) }
        return "\(error.code)\(error.status.map { " \($0)" } ?? ""), \(error.message)"
    }

    /// Returns the status code of a response that caused a failure, or else the error code.
    static func failure(_ code: NetworkError.Code, _ status: Int?) -> String {
        if code == .unacceptableStatus, let status { "\(status)" } else { "\(code)" }
    }

    /// Returns a duration as text, such as `250 ms`, `1.5 s` or `1 min 30 s`.
    package static func time(_ duration: Duration) -> String {
        let (whole, part) = duration.saturatedNanoseconds.quotientAndRemainder(dividingBy: 1_000_000)
        let milliseconds = whole + (part >= 500_000 ? 1 : 0)
        if milliseconds < 1_000 { return "\(milliseconds) ms" }
        let (minutes, rest) = (milliseconds / 60_000, milliseconds % 60_000)
        let (seconds, thousandths) = (rest / 1_000, rest % 1_000)
        var decimals = String(String(thousandths + 1_000).dropFirst())
        while decimals.hasSuffix("0") { decimals.removeLast() }
        let short = "\(seconds)\(decimals.isEmpty ? "" : ".\(decimals)") s"
        if minutes == 0 { return short }
        return rest == 0 ? "\(minutes) min" : "\(minutes) min \(short)"
    }
}
