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

    struct Knobs {
        var draft: RequestDraft
        var rules = ResponseRules()
        var validators: [@Sendable (TaskResult, HTTPURLResponse) throws -> Void] = []
        var emptyResult: (@Sendable () -> ResultType)?
    }

    /// What carries out the attempts; there is nothing in it for users.
    public final let networkAttempts = NetworkAttempts()
    private let session: any NetworkSession
    private let evaluator: Evaluator?
    private let knobs: Locked<Knobs>

    init(_ draft: RequestDraft, _ session: any NetworkSession, _ evaluator: Evaluator?) {
        self.session = session
        self.evaluator = evaluator
        knobs = Locked(Knobs(draft: draft))
        super.init()
    }

    /// Makes an operation that asks for a URL.
    ///
    /// - Parameters:
    ///   - url: What to ask for, by GET.
    ///   - urlSession: The session; `.shared`, or none, is the default one.
    ///   - evaluator: Makes the result. A subclass that overrides ``evaluate(result:response:)`` needs none.
    public init<Session: NetworkSession>(url: URL, urlSession: Session, evaluator: Evaluator? = nil) {
        session = urlSession
        self.evaluator = evaluator
        knobs = Locked(Knobs(draft: RequestDraft(head: .url(url))))
        super.init()
    }

    /// Makes an operation that asks for a URL with the default session.
    public init(url: URL, evaluator: Evaluator? = nil) {
        session = DefaultNetworkSession.standard
        self.evaluator = evaluator
        knobs = Locked(Knobs(draft: RequestDraft(head: .url(url))))
        super.init()
    }

    /// Makes an operation that sends a request of Foundation's.
    public init<Session: NetworkSession>(request: URLRequest, urlSession: Session, evaluator: Evaluator? = nil) {
        session = urlSession
        self.evaluator = evaluator
        knobs = Locked(Knobs(draft: RequestDraft(head: .foundation(request))))
        super.init()
    }

    /// Makes an operation that sends a request of Foundation's with the default session.
    public init(request: URLRequest, evaluator: Evaluator? = nil) {
        session = DefaultNetworkSession.standard
        self.evaluator = evaluator
        knobs = Locked(Knobs(draft: RequestDraft(head: .foundation(request))))
        super.init()
    }

    /// Makes an operation that sends a request that was checked.
    public init<Session: NetworkSession>(request: NetworkRequest, urlSession: Session, evaluator: Evaluator? = nil) {
        session = urlSession
        self.evaluator = evaluator
        knobs = Locked(Knobs(draft: RequestDraft(head: .checked(request))))
        super.init()
    }

    /// Makes an operation that sends a request that was checked with the default session.
    public init(request: NetworkRequest, evaluator: Evaluator? = nil) {
        session = DefaultNetworkSession.standard
        self.evaluator = evaluator
        knobs = Locked(Knobs(draft: RequestDraft(head: .checked(request))))
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
    ///     the operation. A task with a receiver of your own tells only that; then finish the operation by yourself.
    open func createTask(
        with request: NetworkRequest, using session: any NetworkSession
    ) throws -> any NetworkTask {
        session.makeTask(with: request)
    }

    /// Makes the task of an attempt with a session of Foundation's: the older form of the hook.
    ///
    /// A subclass that overrides it makes a task with a completion handler, and finishes the operation there: by
    /// ``evaluate(result:response:)`` and `finish(withResult:)`, or by `finish(withError:)`. The operation resumes and
    /// cancels the task, and tells no progress. The one here returns nil, which means that the other form is asked.
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

    // Knobs, to be set before the start.

    /// What is accepted as a response.
    public final var responseRules: ResponseRules {
        get { knobs.withLock { $0.rules } }
        set {
            var rules = newValue
            knobs.withLock { swap(&$0.rules, &rules) }
        }
    }

    /// Limits of the transfer, for requests that have none of their own.
    public final var transferOptions: TransferOptions {
        get { knobs.withLock { $0.draft.options } }
        set { knobs.withLock { $0.draft.options = newValue } }
    }

    /// Adds a rule that sees the body, too; what it throws fails the operation.
    @discardableResult
    public final func validate(_ rule: @escaping @Sendable (TaskResult, HTTPURLResponse) throws -> Void) -> Self {
        knobs.withLock { $0.validators.append(rule) }
        return self
    }

    /// What an answer without a body gives: one with status 204 or 205, or to HEAD, or of no bytes.
    ///
    /// If it is nil, as from the start, such an answer is evaluated like all others.
    public final var emptyResult: (@Sendable () -> ResultType)? {
        get { knobs.withLock { $0.emptyResult } }
        set {
            var result = newValue
            knobs.withLock { swap(&$0.emptyResult, &result) }
        }
    }

    /// What the last task gave, as it came; nil until it was complete.
    ///
    /// A temporary file is there only if the evaluator left it there and gave its URL as the result.
    public final var taskResult: TaskResult? {
        guard networkAttempts.response != nil else { return nil }
        return try? (networkAttempts.collector as? ResponseCollector<TaskResult>)?.finish()
    }

    /// The queue on which the operation calls its handlers.
    public final var callbackQueueOfAttempts: DispatchQueue { callbackQueue }

    /// Calls `body` when the operation gave its result or failed, with the operation and the error, if any.
    ///
    /// It stands beside the two handlers, is called on the callback queue, and never after a cancellation.
    @discardableResult
    public final func onCompletion(
        _ body: @escaping @Sendable (NetworkOperation<TaskResult, ResultType>, NetworkError?) -> Void
    ) -> Self {
        observe { [weak self] outcome in
            guard let self, outcome.cancellationCause == nil else { return }
            body(self, outcome.error)
        }
        return self
    }

    // The body.

    /// Begins the first attempt.
    public final override func main() {
        networkAttempts.start(for: self)
    }

    @_spi(Subclassing) public final override func suspensionDidChange(_ isSuspended: Bool) {
        networkAttempts.setSuspended(isSuspended)
    }

    @_spi(Subclassing) public final override func outcomeWasTold() {
        networkAttempts.end()
        tellDelegateOfEnd()
    }

    /// Whether it is one of our own classes, none of whose hooks is overridden.
    package var isPlain: Bool { false }
    /// What a request is made of.
    func makeDraft() throws -> RequestDraft { knobs.withLock { $0.draft } }
    /// The session that makes the tasks.
    var operationSession: any NetworkSession { session }
    /// What becomes of a result that was made: a temporary file may have to be kept.
    func didEvaluate(_ result: ResultType, _ collector: ResponseCollector<TaskResult>) {}
}

// The side that the attempts call.
extension NetworkOperation: AttemptHost {
    package var adaptsRequests: Bool { !isPlain }

    package func makeRequest() throws -> NetworkRequest {
        let draft = try makeDraft()
        return isPlain ? try draft.plain() : try draft.with(prepareRequest(draft.foundation))
    }

    package func adaptRequest(_ request: NetworkRequest) async throws -> NetworkRequest { try await adapt(request) }

    package func makeTask(_ request: NetworkRequest, _ receiver: AttemptReceiver) throws -> any NetworkTask {
        let session = operationSession
        if isPlain { return session.withPolicy.makeTask(with: request, receiver: receiver) }
        let foundation = RequestDraft(head: .checked(request)).foundationWithBody
        if let task = createTask(with: foundation, using: session as? URLSession ?? .shared) {
            return FoundationTask(task)
        }
        return try createTask(with: request, using: BoundSession(session.withPolicy, receiver))
    }

    package func makeCollector(
        for head: ResponseHead, of request: NetworkRequest
    ) throws -> AnyResponseCollector {
        let rules = responseRules
        guard rules.accepts(head) else { return ErrorBodyCollector(limit: rules.errorBodyBytes) }
        return try makeCollector(for: head)
    }

    package func evaluate(_ answer: Answer) throws -> @Sendable () -> Void {
        let (rules, validators, emptyResult) = knobs.withLock { ($0.rules, $0.validators, $0.emptyResult) }
        try rules.check(answer)
        if let emptyResult, !answer.mayHaveBody || networkAttempts.receivedCount == 0 {
            let result = emptyResult()
            return { [self] in finish(withResult: result) }
        }
        guard let collector = answer.collector as? ResponseCollector<TaskResult> else {
            throw NetworkError(
                code: .evaluationFailed, phase: .evaluating, message: "The collector gives no \(TaskResult.self).")
        }
        let taken = try collector.finish()
        for validator in validators { try Self.check { try validator(taken, answer.response) } }
        let result = try evaluate(result: taken, response: answer.response)
        didEvaluate(result, collector)
        return { [self] in finish(withResult: result) }
    }

    /// What a rule of the user's throws says that the response was refused, unless it is more exact than that.
    private static func check(_ rule: () throws -> Void) throws {
        do { try rule() } catch let error as NetworkError { throw error } catch {
            var refusal = NetworkError(
                code: .responseRefused, phase: .evaluating, message: "A rule of the operation refused the response.")
            refusal.cause = error
            throw refusal
        }
    }

    package func tellDelegateOfEnd() {
        guard outcome != nil, let (delegate, operation) = networkAttempts.teller.takeDelegateForEnd() else { return }
        callbackQueue.async { operation.tellOfEnd(delegate) }
    }

    package func tellOfEnd(_ delegate: any NetworkOperationDelegate) {
        switch outcome {
        case .success: delegate.networkOperation(self, didFinishWith: nil)
        case .failure(let error): delegate.networkOperation(self, didFinishWith: error)
        case .cancelled(let cause): delegate.networkOperation(self, wasCancelledBecause: cause)
        case nil: break
        }
    }

    package func fail(with error: NetworkError) { finish(withError: error) }
}
