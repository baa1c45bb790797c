// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
@_spi(Subclassing) import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A request as an operation: what its task gives is made into a result by an evaluator.
///
/// It is abstract. Most requests need one of its three concrete subclasses and no more:
///
/// ```swift
/// struct Album: Decodable { let title: String }
///
/// func albumOperation(at url: URL) -> NetworkDataOperation<Album> {
///     NetworkDataOperation(url: url, urlSession: .shared) { data, response in
///         try JSONDecoder().decode(Album.self, from: data)
///     }
/// }
/// ```
///
/// Subclass it, or one of the three, to change a step for a whole family of requests:
///
/// - ``prepareRequest(_:)`` changes the request, at once;
/// - ``adapt(_:)`` changes it when something must be waited for, such as a token;
/// - ``createTask(with:using:)-(NetworkRequest,_)`` makes the task;
/// - ``makeCollector(for:)`` takes in the body, for a `TaskResult` that is neither `Data` nor `URL`;
/// - ``evaluate(result:response:)`` makes the result.
///
/// Each attempt goes through all of them. The first two run where the operation was started and in Swift's pool; the
/// evaluation runs on a thread of its own, never the session's, which it would hold up.
///
/// From its start to its end the operation is kept alive by its transfer.
open class NetworkOperation<TaskResult, ResultType: Sendable>: AsyncOperation<ResultType, NetworkError>,
    AnyNetworkOperation, @unchecked Sendable
{
    // Sendable: what changes is behind locks.

    /// Makes a result of what a task gave.
    public typealias Evaluator = @Sendable (TaskResult, HTTPURLResponse) throws -> ResultType

    typealias Rule = @Sendable (TaskResult, HTTPURLResponse) throws -> Void
    typealias EmptyResult = @Sendable () -> ResultType

    /// What carries out the attempts; there is nothing in it for users.
    public final let networkAttempts = NetworkAttempts()
    private let session: any NetworkSession
    private let evaluator: Evaluator?
    let knobs: Locked<OperationKnobs>

    init(_ draft: RequestDraft, _ session: any NetworkSession, _ evaluator: Evaluator?) {
        (self.session, self.evaluator) = (session, evaluator)
        knobs = Locked(OperationKnobs(draft: draft))
        super.init()
    }

    // A subclass inherits these as they are, and may call each of them, only if none calls another; and a session that may
    // be left out must have a form of its own, for no default of a generic parameter is inherited.

    /// Makes an operation that asks for a URL.
    ///
    /// - Parameters:
    ///   - url: What to ask for, by GET.
    ///   - urlSession: The session; `.shared` is the default one.
    ///   - evaluator: Makes the result. A subclass that overrides ``evaluate(result:response:)`` needs none.
    public init<Session: NetworkSession>(url: URL, urlSession: Session, evaluator: Evaluator? = nil) {
        (session, self.evaluator) = (urlSession, evaluator)
        knobs = Locked(OperationKnobs(draft: RequestDraft(head: .url(url))))
        super.init()
    }

    /// Makes an operation that asks for a URL with the default session.
    public init(url: URL, evaluator: Evaluator? = nil) {
        (session, self.evaluator) = (DefaultNetworkSession.standard, evaluator)
        knobs = Locked(OperationKnobs(draft: RequestDraft(head: .url(url))))
        super.init()
    }

    /// Makes an operation that sends a request of Foundation's.
    public init<Session: NetworkSession>(request: URLRequest, urlSession: Session, evaluator: Evaluator? = nil) {
        (session, self.evaluator) = (urlSession, evaluator)
        knobs = Locked(OperationKnobs(draft: RequestDraft(head: .foundation(request))))
        super.init()
    }

    /// Makes an operation that sends a request of Foundation's with the default session.
    public init(request: URLRequest, evaluator: Evaluator? = nil) {
        (session, self.evaluator) = (DefaultNetworkSession.standard, evaluator)
        knobs = Locked(OperationKnobs(draft: RequestDraft(head: .foundation(request))))
        super.init()
    }

    /// Makes an operation that sends a request that was checked.
    public init<Session: NetworkSession>(request: NetworkRequest, urlSession: Session, evaluator: Evaluator? = nil) {
        (session, self.evaluator) = (urlSession, evaluator)
        knobs = Locked(OperationKnobs(draft: RequestDraft(head: .checked(request))))
        super.init()
    }

    /// Makes an operation that sends a request that was checked with the default session.
    public init(request: NetworkRequest, evaluator: Evaluator? = nil) {
        (session, self.evaluator) = (DefaultNetworkSession.standard, evaluator)
        knobs = Locked(OperationKnobs(draft: RequestDraft(head: .checked(request))))
        super.init()
    }

    // Hooks.

    /// Changes the request before it is sent; called once for each attempt, where the operation was started.
    ///
    /// What it returns is what is sent. A body that the operation was given (a file, a stream) is not in it, and is sent
    /// unless the hook sets one. What it throws fails the operation. The one here returns the request as it is.
    open func prepareRequest(_ request: URLRequest) throws -> URLRequest { request }

    /// Changes the request when something must be waited for, such as a token or a signature; called after
    /// ``prepareRequest(_:)``, once for each attempt.
    ///
    /// Its task is cancelled when the operation is. The one here returns the request as it is.
    open func adapt(_ request: NetworkRequest) async throws -> NetworkRequest { request }

    /// Makes the task of an attempt, which the operation then resumes.
    ///
    /// - Parameters:
    ///   - request: What to send.
    ///   - session: The operation's session, bound to it: what comes for a task made by `session.makeTask(with:)` goes to
    ///     the operation. The same is true for a task that you made by `makeTask(with:)` of another session and return
    ///     without having called it. If it was called before, the operation fails with the code
    ///     ``NetworkError/Code/unboundTask``. A task with a receiver of your own reports only to that receiver. Finish
    ///     the operation yourself in that case.
    ///
    /// You may also return a task of your own type that wraps one of these. If the wrapped task is one of another session,
    /// it must be the only uncalled task that the hook makes by `makeTask(with:)`, or the operation fails with
    /// ``NetworkError/Code/unboundTask``. The operation cannot see which task you wrap: if the hook also makes a task with
    /// the operation's session and drops it, the operation waits for that task.
    open func createTask(
        with request: NetworkRequest, using session: any NetworkSession
    ) throws -> any NetworkTask {
        session.makeTask(with: request)
    }

    /// Makes the task of an attempt with a session of Foundation's: the older form of the hook.
    ///
    /// A subclass that overrides it makes a task with a completion handler, and finishes the operation there: by
    /// ``evaluate(result:response:)`` and `finish(withResult:)`, or by `finish(withError:)`. The operation resumes and
    /// cancels the task, and tells no progress. The request takes a body along that is in memory or a whole file; any other
    /// fails the operation, unless the task is one for an upload, which has its own. The one here returns nil, which means
    /// that the other form is asked.
    ///
    /// What the completion handler finishes the operation with is its end: retry does not see it. Only a preparation that
    /// failed, or an attempt that ran out of its time (``Retry/attemptTimeout``), is followed by another; the task is then
    /// cancelled, and its completion handler must not finish the operation with that: leave `URLError.cancelled` alone.
    ///
    /// - Parameters:
    ///   - request: What to send.
    ///   - session: The session that the operation was made with, if it is one of Foundation's, or else the shared one.
    open func createTask(with request: URLRequest, using session: URLSession) -> URLSessionTask? { nil }

    /// Makes what takes in the body of a successful response.
    ///
    /// The one here knows `Data` and temporary files (`URL`). Override it for a `TaskResult` of your own.
    open func makeCollector(for head: ResponseHead) throws -> ResponseCollector<TaskResult> {
        if let collector = DataCollector(limit: responseRules.maximumBytesInMemory, expected: head.expectedLength)
            as? ResponseCollector<TaskResult>
        {
            return collector
        }
        if let collector = try TemporaryFileCollector(in: FileManager.default.temporaryDirectory)
            as? ResponseCollector<TaskResult>
        {
            return collector
        }
        throw NetworkError(
            code: .evaluationFailed, phase: .receiving,
            message: "There is no collector for \(TaskResult.self). Override makeCollector(for:) in \(type(of: self)).")
    }

    /// Makes the result of what the task gave: by the evaluator, unless a subclass overrides it.
    ///
    /// What it throws fails the operation.
    open func evaluate(result: TaskResult, response: HTTPURLResponse) throws -> ResultType {
        guard let evaluator else {
            throw NetworkError(
                code: .evaluationFailed, phase: .evaluating,
                message: "\(type(of: self)) has no evaluator. Give it one, or override evaluate(result:response:).")
        }
        return try evaluator(result, response)
    }

    /// Makes the result where nobody wants Foundation's form of the response; nil where `evaluate(result:response:)` does it.
    package func evaluate(result: TaskResult, head: ResponseHead) throws -> ResultType? { nil }

    // Knobs, to be set before the start.

    /// What is accepted as a response.
    public final var responseRules: ResponseRules {
        get { knobs.withLock { $0.rules } }
        set {
            var rules = newValue
            knobs.withLock { swap(&$0.rules, &rules) }
        }
    }

    /// How the request is transferred: its time limits above all.
    ///
    /// Once they are set here they stand in the place of those of the request, and of an endpoint's base.
    public final var transferOptions: TransferOptions {
        get { ownTransferOptions ?? inheritedTransferOptions }
        set { knobs.withLock { $0.draft.options = newValue } }
    }

    /// Those that were set on the operation itself.
    final var ownTransferOptions: TransferOptions? { knobs.withLock { $0.draft.options } }

    /// Those that stand as long as none were set on the operation.
    var inheritedTransferOptions: TransferOptions {
        if case .checked(let request) = knobs.withLock({ $0.draft.head }) { request.options } else { .standard }
    }

    /// Adds a rule that sees the body, too; what it throws fails the operation.
    @discardableResult
    public final func validate(_ rule: @escaping @Sendable (TaskResult, HTTPURLResponse) throws -> Void) -> Self {
        let kept = OperationKnobs.Kept<Rule>(rule)
        knobs.withLock { $0.validators.append(kept) }
        return self
    }

    /// What an answer without a body gives: one with status 204 or 205, or to HEAD, or of no bytes.
    ///
    /// If it is nil, as from the start, such an answer is evaluated like all others.
    public final var emptyResult: (@Sendable () -> ResultType)? {
        get { (knobs.withLock { $0.emptyResult } as? OperationKnobs.Kept<EmptyResult>)?.closure }
        set {
            var kept: (any AnyObject & Sendable)? = newValue.map { OperationKnobs.Kept<EmptyResult>($0) }
            knobs.withLock { swap(&$0.emptyResult, &kept) }
        }
    }

    /// What the last task gave, as it came, also where it could not be made into a result; nil until it was complete, and
    /// of an answer with a status that is not accepted.
    ///
    /// A temporary file is there only if the evaluator left it there and gave its URL as the result.
    public final var taskResult: TaskResult? {
        (knobs.withLock { $0.taken } as? OperationKnobs.Taken<TaskResult>)?.result
    }

    /// The queue on which the operation calls its handlers.
    public final var callbackQueueOfAttempts: DispatchQueue { callbackQueue }

    // The body.

    /// Begins the first attempt.
    public final override func main() {
        if isInGroup { inheritFromGroups() }
        networkAttempts.start(for: self)
    }

    @_spi(Subclassing) public final override func suspensionDidChange(_ isSuspended: Bool) {
        networkAttempts.setSuspended(isSuspended)
    }

    @_spi(Subclassing) public final override func outcomeWasTold() {
        networkAttempts.end(of: self) { ending(received: $0) }
        transfersAreOver()
        tellDelegateOfEnd()
    }

    @_spi(Subclassing) public final override var isBodyBrief: Bool { isBrief }

    /// Whether an attempt begins in a moment, and nothing of the user's belongs to that.
    package var isBrief: Bool { false }
    /// Whether it is one of our own classes, none of whose hooks is overridden.
    package var isPlain: Bool { false }
    /// What a request is made of.
    func makeDraft() throws -> RequestDraft { knobs.withLock { $0.draft } }
    /// The session that was given.
    var operationSession: any NetworkSession { session }
    /// The session that makes the task of an attempt.
    var attemptSession: any NetworkSession { operationSession }
    /// Refuses a collector that would get nothing.
    func check(_ collector: AnyResponseCollector) throws(NetworkError) {}
    /// No other attempt will begin, and the operation is about to fail: `fail` does that.
    func beforeFailure(_ fail: @escaping @Sendable () -> Void) { fail() }
    /// The operation has its outcome, and no other attempt will begin.
    func transfersAreOver() {}

    /// The outcome, for those who observe.
    private func ending(received: Int64) -> AttemptStep {
        switch outcome {
        case .success, nil: .ended(.success, nil, nil, received: received)
        case .failure(let error): .ended(.failure, error, nil, received: received)
        case .cancelled(let cause): .ended(.cancelled, nil, cause, received: received)
        }
    }
}
