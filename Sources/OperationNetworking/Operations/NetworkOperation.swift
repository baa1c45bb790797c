// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
@_spi(Subclassing) import OperationCore
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A request as an operation, whose result an evaluator makes of the response.
///
/// Most requests need one of its three subclasses, ``NetworkDataOperation``, ``NetworkDownloadOperation`` and
/// ``NetworkUploadOperation``, and no more:
///
/// ```swift
/// struct Album: Decodable, Sendable { let title: String }
///
/// func albums(at url: URL) -> [NetworkDataOperation<Album>] {
///     [
///         // Decoded from JSON, since the result is Decodable.
///         NetworkDataOperation(url: url),
///         NetworkDataOperation(url: url, urlSession: .shared) { data, response in
///             try JSONDecoder().decode(Album.self, from: data)
///         },
///         NetworkDataOperation(url: url) { response in
///             Album(title: response.headers["X-Title"] ?? "none")
///         },
///     ]
/// }
/// ```
///
/// Subclass it, or one of the three, to change a step for a whole family of requests:
///
/// - ``makeRequest()`` makes the request;
/// - ``prepareRequest(_:)`` changes the request immediately;
/// - ``adapt(_:)`` changes it when something must be waited for, such as a token;
/// - ``createTask(with:using:)-(NetworkRequest,_)`` makes the task;
/// - ``makeCollector(for:)`` takes in the body, for a `TaskResult` that is neither `Data` nor `URL`;
/// - ``evaluate(result:head:)`` makes the result, or ``evaluate(result:response:)`` with Foundation's response.
///
/// Each attempt goes through all of them; the first three are called again after the request waited for something, such as a
/// credential. The first two run on the thread that starts the operation or ends a wait, and ``adapt(_:)`` in Swift's pool; the
/// evaluation runs on a thread of its own, never the session's, which it would hold up.
///
/// ### Without an evaluator
///
/// An operation without an evaluator makes its result as the types say:
///
/// - The result of the task is the result of the operation if both have the same type: `NetworkDataOperation<Data>`,
///   `NetworkDownloadOperation<URL>`.
/// - A body in memory is read as ``Endpoint`` reads it if the result is `Decodable`: `String` is the text, ``NoContent``
///   ignores the body, an optional is nil where there is no body, and all other types are decoded from JSON.
///
/// For any other result, such as `Void`, the three classes fail immediately when they start, before anything is sent. Use
/// ``NoContent`` for a request without a result. Swift cannot tell whether a subclass overrides a hook. A subclass that neither
/// has an evaluator nor overrides one of the two `evaluate` hooks therefore fails only when the response is complete.
///
/// From its start to its end the operation is kept alive by its transfer.
open class NetworkOperation<TaskResult, ResultType: Sendable>: AsyncOperation<ResultType, NetworkError>,
    AnyNetworkOperation, @unchecked Sendable
{
    // Sendable: what changes is behind locks.

    /// Makes a result of what a task gave and of the response in Foundation's form.
    public typealias Evaluator = @Sendable (TaskResult, HTTPURLResponse) throws -> ResultType

    typealias ResponseEvaluator = @Sendable (NetworkResponse<TaskResult>) throws -> ResultType
    typealias Rule = @Sendable (TaskResult, HTTPURLResponse) throws -> Void
    typealias ResponseRule = @Sendable (NetworkResponse<TaskResult>) throws -> Void
    typealias EmptyResult = @Sendable () -> ResultType

    /// What carries out the attempts; there is nothing in it for users.
    public final let networkAttempts = NetworkAttempts()
    private let session: any NetworkSession
    // One of the two, or none.
    private let evaluator: Evaluator?
    private let responseEvaluator: ResponseEvaluator?
    let knobs: Locked<OperationKnobs>
    /// Whether there is an ``OperationKnobs/service``: operations without one are spared the lock.
    let hasService = Atomic(false)

    init(
        _ draft: RequestDraft, _ session: any NetworkSession, _ evaluator: Evaluator?,
        _ responseEvaluator: ResponseEvaluator? = nil
    ) {
        (self.session, self.evaluator, self.responseEvaluator) = (session, evaluator, responseEvaluator)
        knobs = Locked(OperationKnobs(draft: draft))
        super.init()
    }

    // A subclass inherits these as they are, and may call each of them, only if none calls another.

    /// Creates an operation that asks for a URL.
    ///
    /// - Parameters:
    ///   - url: What to ask for, by GET.
    ///   - urlSession: The session: any ``NetworkSession``, such as `.shared` or a `URLSession`. The default is the default
    ///     session of the platform: see ``DefaultNetworkSession``.
    ///   - evaluator: Makes the result. The default is `nil`: see the section "Without an evaluator" of ``NetworkOperation``.
    public init(
        url: URL, urlSession: any NetworkSession = DefaultNetworkSession.standard, evaluator: Evaluator? = nil
    ) {
        (session, self.evaluator, responseEvaluator) = (urlSession, evaluator, nil)
        knobs = Locked(OperationKnobs(draft: RequestDraft(head: .url(url))))
        super.init()
    }

    /// Creates an operation that asks for a URL, with an evaluator that needs no type of Foundation's networking.
    ///
    /// The evaluator has one parameter: `{ response in response.body.count }`.
    public init(
        url: URL, urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: @escaping @Sendable (NetworkResponse<TaskResult>) throws -> ResultType
    ) {
        (session, self.evaluator, responseEvaluator) = (urlSession, nil, evaluator)
        knobs = Locked(OperationKnobs(draft: RequestDraft(head: .url(url))))
        super.init()
    }

    /// Creates an operation that sends a request of Foundation's.
    public init(
        request: URLRequest, urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: Evaluator? = nil
    ) {
        (session, self.evaluator, responseEvaluator) = (urlSession, evaluator, nil)
        knobs = Locked(OperationKnobs(draft: RequestDraft(head: .foundation(request))))
        super.init()
    }

    /// Creates an operation that sends a request of Foundation's, with an evaluator of one parameter.
    public init(
        request: URLRequest, urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: @escaping @Sendable (NetworkResponse<TaskResult>) throws -> ResultType
    ) {
        (session, self.evaluator, responseEvaluator) = (urlSession, nil, evaluator)
        knobs = Locked(OperationKnobs(draft: RequestDraft(head: .foundation(request))))
        super.init()
    }

    /// Creates an operation that sends a request that was checked.
    public init(
        request: NetworkRequest, urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: Evaluator? = nil
    ) {
        (session, self.evaluator, responseEvaluator) = (urlSession, evaluator, nil)
        knobs = Locked(OperationKnobs(draft: RequestDraft(head: .checked(request))))
        super.init()
    }

    /// Creates an operation that sends a request that was checked, with an evaluator of one parameter.
    public init(
        request: NetworkRequest, urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: @escaping @Sendable (NetworkResponse<TaskResult>) throws -> ResultType
    ) {
        (session, self.evaluator, responseEvaluator) = (urlSession, nil, evaluator)
        knobs = Locked(OperationKnobs(draft: RequestDraft(head: .checked(request))))
        super.init()
    }

    /// Creates an operation of a subclass that overrides ``makeRequest()``.
    ///
    /// An abstract base class needs no URL:
    ///
    /// ```swift
    /// class ShopOperation<ResultType: Sendable>: NetworkDataOperation<ResultType>, @unchecked Sendable {
    ///     let shop: URL
    ///
    ///     init(_ shop: URL, urlSession: any NetworkSession) {
    ///         self.shop = shop
    ///         super.init(urlSession: urlSession)
    ///     }
    ///
    ///     var path: String { "" }
    ///
    ///     override func makeRequest() throws -> NetworkRequest {
    ///         try NetworkRequest(url: shop.appending(path: path))
    ///     }
    /// }
    /// ```
    public init(urlSession: any NetworkSession = DefaultNetworkSession.standard, evaluator: Evaluator? = nil) {
        (session, self.evaluator, responseEvaluator) = (urlSession, evaluator, nil)
        knobs = Locked(OperationKnobs(draft: RequestDraft(head: .none)))
        super.init()
    }

    /// Creates an operation of a subclass that overrides ``makeRequest()``, with an evaluator of one parameter.
    public init(
        urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: @escaping @Sendable (NetworkResponse<TaskResult>) throws -> ResultType
    ) {
        (session, self.evaluator, responseEvaluator) = (urlSession, nil, evaluator)
        knobs = Locked(OperationKnobs(draft: RequestDraft(head: .none)))
        super.init()
    }

    // Hooks.

    /// Makes the request of an attempt.
    ///
    /// It is called before ``prepareRequest(_:)``, at least once for each attempt, and again after the request waited for a
    /// credential or for another reason. It runs on the thread that starts the operation or that ends the wait. What it throws
    /// fails the operation before anything is sent. The one here returns the request that the operation was made with; an
    /// operation that was made without one fails.
    ///
    /// Header fields and options of a service (see `using(_:)`) and the ``transferOptions`` of the operation are added to
    /// what it returns.
    open func makeRequest() throws -> NetworkRequest {
        if let request = try knobs.withLock({ $0.draft }).request() { return request }
        throw NetworkError(
            code: .preparationFailed, phase: .checking,
            message: "\(type(of: self)) has no request. Override makeRequest() without calling super, or make the "
                + "operation with a URL or a request.")
    }

    /// Changes the request before it is sent; called after ``makeRequest()``, each time.
    ///
    /// The operation sends the request that the hook returns. A body in memory is in `request`, so the hook can sign it,
    /// replace it or remove it. A file or a stream is not in `request`, and is sent unless the hook sets a body. An error
    /// that the hook throws fails the operation. The default implementation returns the request unchanged.
    open func prepareRequest(_ request: URLRequest) throws -> URLRequest { request }

    /// Changes the request when something must be waited for, such as a token or a signature; called after
    /// ``prepareRequest(_:)``, each time.
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
    /// it must be the only task that the hook makes by `makeTask(with:)`, or the operation fails with
    /// ``NetworkError/Code/unboundTask``; if your task wraps no task, the hook must make none in this way. The operation cannot see which task you wrap: if the hook also makes a task with
    /// the operation's session and drops it, the operation waits for that task.
    open func createTask(
        with request: NetworkRequest, using session: any NetworkSession
    ) throws -> any NetworkTask {
        session.makeTask(with: request)
    }

    /// Makes the task of an attempt with a session of Foundation's: the older form of the hook.
    ///
    /// A subclass that overrides the method makes a task with a completion handler, and the completion handler finishes the
    /// operation: by ``evaluate(result:response:)`` and `finish(withResult:)`, or by `finish(withError:)`. The operation asks
    /// the hook in every attempt. If it returns `nil`, as the default implementation does, the operation asks
    /// ``createTask(with:using:)-(NetworkRequest,_)`` for the task.
    ///
    /// The operation never sees the response to such a task. That decides what the operation does for it:
    ///
    /// - The operation makes and prepares the request: ``makeRequest()``, ``prepareRequest(_:)``, ``adapt(_:)``, the token of an
    ///   authenticator, the header fields of a service. It resumes the task, and cancels it when the operation is canceled
    ///   or when an attempt runs out of its time (``Retry/attemptTimeout``).
    /// - Another attempt follows an attempt that ran out of its time, and an error that one of these hooks throws, as far as the
    ///   retry rule allows. A `URLError` that this method throws counts as a failure of the transfer.
    /// - The operation ends with the first result or error that the completion handler gives it. No retry follows, and no
    ///   refresh of a token, whatever the error is.
    /// - There is no progress, and ``responseRules``, `validate(_:)`, ``emptyResult`` and ``makeCollector(for:)`` are not asked.
    ///   Check the status in the completion handler. `URLSession` follows redirects and keeps cookies by its own rules.
    /// - On Linux, `suspend()` does not reach a task that runs.
    ///
    /// To have these, override ``createTask(with:using:)-(NetworkRequest,_)`` instead. A subclass that only changes the request or
    /// makes the result overrides ``prepareRequest(_:)`` or ``evaluate(result:head:)``, and no form of this method.
    ///
    /// A task that the operation cancels calls its completion handler with `URLError.cancelled`. The completion handler must not
    /// finish the operation then, because another attempt may have begun. If you cancel the task or invalidate the session
    /// yourself, cancel the operation as well.
    ///
    /// The request has the body if the body is in memory or a whole file. Any other body fails the operation, unless the task is
    /// an upload task, which has a body of its own.
    ///
    /// - Parameters:
    ///   - request: The request to send.
    ///   - session: The session that the operation was made with, if it is one of Foundation's, or else the shared one.
    /// - Returns: A task that was not resumed, or `nil`.
    open func createTask(with request: URLRequest, using session: URLSession) throws -> URLSessionTask? { nil }

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

    /// Makes the result of what the task gave.
    ///
    /// It runs on a thread of its own. What it throws fails the operation. The one here calls
    /// ``evaluate(result:response:)``, or the evaluator where that needs no response of Foundation's.
    open func evaluate(result: TaskResult, head: ResponseHead) throws -> ResultType {
        // To make a response of Foundation's takes longer than to decode a small body.
        if evaluator == nil, isPlain { return try makeResult(of: result, head) }
        return try evaluate(result: result, response: networkAttempts.needResponse(of: head))
    }

    /// Makes the result of what the task gave, with the response in Foundation's form.
    ///
    /// Override one of the two forms. The one here makes the result by the evaluator, or as the types say: see
    /// ``NetworkOperation``. What it throws fails the operation.
    open func evaluate(result: TaskResult, response: HTTPURLResponse) throws -> ResultType {
        if let evaluator { return try evaluator(result, response) }
        // An override may have called this with another response than the one that came.
        let own = networkAttempts.head.flatMap { networkAttempts.response(of: $0) === response ? $0 : nil }
        let head = own ?? networkAttempts.request.flatMap { ResponseHead(response, to: $0) }
        guard let head else {
            throw NetworkError(
                code: .invalidResponse, phase: .evaluating,
                message: "\(type(of: self)) was given a response before it sent a request.")
        }
        return try makeResult(of: result, head)
    }

    /// Makes the result without Foundation's response: by an evaluator of one parameter, or as the types say.
    private func makeResult(of result: TaskResult, _ head: ResponseHead) throws -> ResultType {
        if let responseEvaluator { return try responseEvaluator(NetworkResponse(body: result, head: head)) }
        if let model = decodableResult, let data = result as? Data {
            let makeDecoder = service?.makeDecoder ?? { JSONDecoder() }
            if let made = try DecodedBody.read(model, as: ResultType.self, data, head, makeDecoder) { return made }
        }
        if isTaskResult, let result = result as? ResultType { return result }
        throw missingEvaluator(.evaluating)
    }

    /// The result, if the body is decoded where there is no evaluator.
    private var decodableResult: (any Decodable.Type)? {
        TaskResult.self == Data.self ? ResultType.self as? any Decodable.Type : nil
    }

    /// Whether the result of the task is the result of the operation where there is no evaluator.
    private var isTaskResult: Bool { ResultType.self == TaskResult.self || ResultType.self == TaskResult?.self }

    /// Refuses to send a request of whose response nothing could be made, as far as that can be known.
    final func checkEvaluation() throws(NetworkError) {
        guard evaluator == nil, responseEvaluator == nil, makesResultByEvaluator else { return }
        guard decodableResult == nil, !isTaskResult else { return }
        throw missingEvaluator(.checking)
    }

    private func missingEvaluator(_ phase: NetworkError.Phase) -> NetworkError {
        NetworkError(
            code: .evaluationFailed, phase: phase,
            message: "\(type(of: self)) has no evaluator, and nothing else says how a \(TaskResult.self) becomes a "
                + "\(ResultType.self). Give the operation an evaluator, or override evaluate(result:head:).")
    }

    // Knobs, to be set before the start.

    /// What is accepted as a response.
    ///
    /// When the operation ends, it releases ``ResponseRules/decodeError``, which is `nil` from then on.
    public final var responseRules: ResponseRules {
        get { knobs.withLock { $0.rules } }
        set {
            var rules = newValue
            knobs.withLock { swap(&$0.rules, &rules) }
            releaseRulesIfEnded()
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
        let (head, service) = knobs.withLock { ($0.draft.head, $0.service) }
        if case .checked(let request) = head, request.options != .standard { return request.options }
        return service?.options ?? .standard
    }

    /// Adds a rule that sees the body, too; what it throws fails the operation.
    @discardableResult
    public final func validate(_ rule: @escaping @Sendable (TaskResult, HTTPURLResponse) throws -> Void) -> Self {
        let kept = OperationKnobs.Kept<Rule>(rule)
        knobs.withLock { $0.validators.append(kept) }
        releaseRulesIfEnded()
        return self
    }

    /// Adds a rule that sees the body, too, and needs no type of Foundation's networking; what it throws fails the
    /// operation.
    ///
    /// The rule has one parameter: `{ response in … }`.
    @discardableResult
    public final func validate(_ rule: @escaping @Sendable (NetworkResponse<TaskResult>) throws -> Void) -> Self {
        let kept = OperationKnobs.Kept<ResponseRule>(rule)
        knobs.withLock { $0.validators.append(kept) }
        releaseRulesIfEnded()
        return self
    }

    /// What an answer without a body gives: one with status 204 or 205, or to HEAD, or of no bytes.
    ///
    /// If it is nil, as from the start, such an answer is evaluated like all others. When the operation ends, it releases the
    /// closure.
    public final var emptyResult: (@Sendable () -> ResultType)? {
        get { (knobs.withLock { $0.emptyResult } as? OperationKnobs.Kept<EmptyResult>)?.closure }
        set {
            var kept: (any AnyObject & Sendable)? = newValue.map { OperationKnobs.Kept<EmptyResult>($0) }
            knobs.withLock { swap(&$0.emptyResult, &kept) }
            releaseRulesIfEnded()
        }
    }

    /// Releases the closures that nothing calls after the end: each may hold the operation, or all that a user holds.
    private func releaseRules() {
        let old = knobs.withLock { knobs in
            (
                exchange(&knobs.validators, with: []), exchange(&knobs.emptyResult, with: nil),
                exchange(&knobs.rules.decodeError, with: nil)
            )
        }
        withExtendedLifetime(old) {}
    }

    /// Releases a closure that was set too late, which nothing would release later.
    private func releaseRulesIfEnded() {
        if outcome != nil { releaseRules() }
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
        networkAttempts.teller.releaseHandlers(on: { callbackQueue })
        releaseRules()
    }

    @_spi(Subclassing) public final override var isBodyBrief: Bool { isBrief }

    /// Whether an attempt begins in a moment, and nothing of the user's belongs to that.
    package var isBrief: Bool { false }
    /// Whether it is one of our own classes, none of whose hooks is overridden.
    package var isPlain: Bool { false }
    /// Whether it is known that only an evaluator, or the types, make the result.
    var makesResultByEvaluator: Bool { isPlain || type(of: self) == NetworkOperation<TaskResult, ResultType>.self }
    /// The service to which the operation belongs.
    final var service: OperationKnobs.Service? {
        hasService.load(ordering: .acquiring) ? knobs.withLock { $0.service } : nil
    }
    /// The service whose headers no hook takes to another origin.
    var serviceOfHooks: OperationKnobs.Service? { service }
    /// The session that was given, or else that of the service.
    var operationSession: any NetworkSession {
        guard let service, session === DefaultNetworkSession.standard else { return session }
        return service.session
    }
    /// Gets ready for another attempt; called before its task is made.
    func prepareAttempt() throws(NetworkError) {}
    /// The session that makes the task of an attempt, over the session that sends the request.
    func attemptSession(over session: any NetworkSession) -> any NetworkSession { session }
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
