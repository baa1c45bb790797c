// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// What a ``StubSession`` tells of a task, step by step.
///
/// ```swift
/// import OperationTestKit
///
/// let session = StubSession(), goOn = Gate()
/// session.route("GET", "/songs") { _ in .json(encoding: ["One", "Two"]).with("ETag", "\"1\"") }
/// session.route("GET", "/late") { _ in .text("Hello").after(.seconds(5)) }
/// session.route("GET", "/half") { _ in
///     StubAnswer(.head(200, ["Content-Length": "10"]), .bytes("Hello"), .stall(until: goOn), .fail(.connectionLost))
/// }
/// ```
public struct StubAnswer: Sendable {
    /// One thing that is told, or waited for.
    public struct Step: Sendable {
        enum Kind: Sendable {
            case head(status: Int, HeaderFields)
            case wholeHead(ResponseHead)
            case bytes(Data)
            case trailers(HeaderFields)
            case gate(Gate)
            case pause(Duration)
            case failure(NetworkError.Code)
            case error(NetworkError)
        }

        let kind: Kind

        /// The whole head, with the address that answered.
        static func head(_ head: ResponseHead) -> Step { Step(kind: .wholeHead(head)) }

        /// A head; informational if the status is below 200.
        public static func head(_ status: Int, _ headers: HeaderFields = [:]) -> Step {
            Step(kind: .head(status: status, headers))
        }

        /// Bytes of the body, handed over in one call.
        public static func bytes(_ data: Data) -> Step { Step(kind: .bytes(data)) }

        /// Bytes of the body, handed over in one call.
        public static func bytes(_ text: String) -> Step { .bytes(Data(text.utf8)) }

        /// Fields behind the body.
        public static func trailers(_ fields: HeaderFields) -> Step { Step(kind: .trailers(fields)) }

        /// Goes on when the gate is open.
        public static func stall(until gate: Gate) -> Step { Step(kind: .gate(gate)) }

        /// Goes on after this time on the session's clock.
        public static func pause(_ duration: Duration) -> Step { Step(kind: .pause(duration)) }

        /// Ends the task with an error of this kind.
        public static func fail(_ code: NetworkError.Code) -> Step { Step(kind: .failure(code)) }

        /// Ends the task with this error, which gets the request's summary if it has none.
        public static func fail(_ error: NetworkError) -> Step { Step(kind: .error(error)) }
    }

    /// What is told, in this order; then comes the end.
    public var steps: [Step]

    /// Makes an answer of steps.
    public init(_ steps: Step...) { self.steps = steps }

    /// Makes an answer of steps.
    public init(steps: [Step]) { self.steps = steps }

    /// A status without a body.
    public static func status(_ status: Int, _ headers: HeaderFields = [:]) -> Self { Self(.head(status, headers)) }

    /// A body with its length and its type.
    public static func data(_ data: Data, type: String, status: Int = 200) -> Self {
        Self(.head(status, ["Content-Type": type, "Content-Length": "\(data.count)"]), .bytes(data))
    }

    /// A text.
    public static func text(_ text: String, status: Int = 200) -> Self {
        .data(Data(text.utf8), type: "text/plain; charset=utf-8", status: status)
    }

    /// JSON, as it is.
    public static func json(_ text: String, status: Int = 200) -> Self {
        .data(Data(text.utf8), type: "application/json", status: status)
    }

    /// A value as JSON; status 500 and the reason where it cannot be encoded.
    public static func json(encoding value: some Encodable, status: Int = 200) -> Self {
        do {
            return .data(try JSONEncoder().encode(value), type: "application/json", status: status)
        } catch {
            return .text("The test's own answer cannot be encoded: \(error)", status: 500)
        }
    }

    /// An error before anything was answered.
    public static func failure(_ code: NetworkError.Code) -> Self { Self(.fail(code)) }

    /// The same answer with that field in each of its final heads, in the place of all of that name.
    public func with(_ name: String, _ value: String) -> Self { changingHeads { $0[name] = value } }

    /// The same answer with a field more in each of its final heads, beside those of that name.
    public func adding(_ name: String, _ value: String) -> Self { changingHeads { $0.add(name, value) } }

    private func changingHeads(_ change: (inout HeaderFields) -> Void) -> Self {
        Self(
            steps: steps.map { step in
                guard case .head(let status, var fields) = step.kind, status >= 200 else { return step }
                change(&fields)
                return .head(status, fields)
            })
    }

    /// The same answer, given when the gate is open.
    public func after(_ gate: Gate) -> Self { Self(steps: [.stall(until: gate)] + steps) }

    /// The same answer, given after this time on the session's clock.
    public func after(_ duration: Duration) -> Self { Self(steps: [.pause(duration)] + steps) }

    /// The same answer with an error in the place of its end.
    public func failing(_ code: NetworkError.Code) -> Self { Self(steps: steps + [.fail(code)]) }
}
