// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
@_spi(Subclassing) import OperationCore
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An operation that sends a request and creates its result from the response.
///
/// Most requests need only one of its three subclasses: ``NetworkDataOperation``, ``NetworkDownloadOperation`` and
/// ``NetworkUploadOperation``.
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
/// To change a step for a whole family of requests, create a subclass of this class or of one of the three subclasses,
/// and override a hook:
///
/// - ``makeRequest()`` creates the request.
/// - ``prepareRequest(_:)`` changes the request synchronously.
/// - ``adapt(_:)`` changes the request asynchronously, for example after a wait for a token.
/// - ``createTask(with:using:)-(NetworkRequest,_)`` creates the task.
/// - ``makeCollector(for:)`` creates the collector of the body, for a `TaskResult` that is neither `Data` nor `URL`.
/// - ``evaluate(result:head:)`` creates the result. ``evaluate(result:response:)`` does the same with Foundation's
///   response.
///
/// The operation calls all of these hooks in each attempt. The operation calls the first three hooks again after the
/// request waited, for example for a credential.
///
/// The first two hooks run on the thread that starts the operation or ends a wait. The ``adapt(_:)`` hook runs in
/// Swift's thread pool. The evaluation runs on a separate thread, so that it does not block a thread of the session.
///
/// ### Without an evaluator
///
/// An operation without an evaluator determines its result from the types:
///
/// - The result of the task is the result of the operation if both have the same type: `NetworkDataOperation<Data>`,
///   `NetworkDownloadOperation<URL>`.
/// - If the result is `Decodable`, the operation decodes a body in memory as ``Endpoint`` does. A `String` is the text,
///   and ``NoContent`` ignores the body. An optional is `nil` if there is no body. All other types are decoded from
///   JSON.
///
/// For any other result, such as `Void`, an operation of one of the three classes fails immediately when it starts,
/// before it sends anything. Use ``NoContent`` for a request without a result.
///
/// Swift cannot detect whether a subclass overrides a hook. A subclass may have no evaluator and override neither of
/// the two `evaluate` hooks. Such an operation fails only when the response is complete.
///
/// The transfer keeps the operation alive from its start to its end.
open class NetworkOperation<TaskResult, ResultType: Sendable>: AsyncOperation<ResultType, NetworkError>,
    AnyNetworkOperation, @unchecked Sendable
{
    // Sendable: all mutable state is behind locks.

    /// A closure that creates a result from the result of the task and the response in Foundation's form.
    public typealias Evaluator = @Sendable (TaskResult, HTTPURLResponse) throws -> ResultType

    typealias ResponseEvaluator = @Sendable (NetworkResponse<TaskResult>) throws -> ResultType
    typealias Rule = @Sendable (TaskResult, HTTPURLResponse) throws -> Void
    typealias ResponseRule = @Sendable (NetworkResponse<TaskResult>) throws -> Void
    typealias EmptyResult = @Sendable () -> ResultType

    /// An internal object that performs the attempts.
    public final let networkAttempts = NetworkAttempts()
    private let session: any NetworkSession
    // At most one of these two closures is set.
    private let evaluator: Evaluator?
    private let responseEvaluator: ResponseEvaluator?
    let settings: Locked<NetworkOperationOptions>
    /// Whether there is an ``NetworkOperationOptions/service``.
    ///
    /// Operations without a service do not need to take the lock.
    let hasService = Atomic(false)

    init(
        _ draft: RequestDraft, _ session: any NetworkSession, _ evaluator: Evaluator?,
        _ responseEvaluator: ResponseEvaluator? = nil
    ) {
        (self.session, self.evaluator, self.responseEvaluator) = (session, evaluator, responseEvaluator)
        settings = Locked(NetworkOperationOptions(draft: draft))
        super.init()
    }

    // A subclass inherits these initializers, and may call each of them, only if none of them calls another.

    /// Creates an operation that sends a GET request to a URL.
    ///
    /// - Parameters:
    ///   - url: The URL of the GET request.
    ///   - urlSession: Any ``NetworkSession``, such as `.shared` or a `URLSession`. The default is the default session
    ///     of the platform: see ``DefaultNetworkSession``.
    ///   - evaluator: A closure that creates the result, on a separate thread. The default is `nil`: see the section
    ///     "Without an evaluator" of ``NetworkOperation``.
    public init(
        url: URL, urlSession: any NetworkSession = DefaultNetworkSession.standard, evaluator: Evaluator? = nil
    ) {
        (session, self.evaluator, responseEvaluator) = (urlSession, evaluator, nil)
        settings = Locked(NetworkOperationOptions(draft: RequestDraft(head: .url(url))))
        super.init()
    }

    /// Creates an operation that sends a GET request to a URL, with an evaluator that does not use Foundation's
    /// networking types.
    ///
    /// The evaluator has one parameter: `{ response in response.body.count }`.
    public init(
        url: URL, urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: @escaping @Sendable (NetworkResponse<TaskResult>) throws -> ResultType
    ) {
        (session, self.evaluator, responseEvaluator) = (urlSession, nil, evaluator)
        settings = Locked(NetworkOperationOptions(draft: RequestDraft(head: .url(url))))
        super.init()
    }

    /// Creates an operation that sends a `URLRequest`.
    public init(
        request: URLRequest, urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: Evaluator? = nil
    ) {
        (session, self.evaluator, responseEvaluator) = (urlSession, evaluator, nil)
        settings = Locked(NetworkOperationOptions(draft: RequestDraft(head: .foundation(request))))
        super.init()
    }

    /// Creates an operation that sends a `URLRequest`, with an evaluator of one parameter.
    public init(
        request: URLRequest, urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: @escaping @Sendable (NetworkResponse<TaskResult>) throws -> ResultType
    ) {
        (session, self.evaluator, responseEvaluator) = (urlSession, nil, evaluator)
        settings = Locked(NetworkOperationOptions(draft: RequestDraft(head: .foundation(request))))
        super.init()
    }

    /// Creates an operation that sends a ``NetworkRequest``.
    public init(
        request: NetworkRequest, urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: Evaluator? = nil
    ) {
        (session, self.evaluator, responseEvaluator) = (urlSession, evaluator, nil)
        settings = Locked(NetworkOperationOptions(draft: RequestDraft(head: .checked(request))))
        super.init()
    }

    /// Creates an operation that sends a ``NetworkRequest``, with an evaluator of one parameter.
    public init(
        request: NetworkRequest, urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: @escaping @Sendable (NetworkResponse<TaskResult>) throws -> ResultType
    ) {
        (session, self.evaluator, responseEvaluator) = (urlSession, nil, evaluator)
        settings = Locked(NetworkOperationOptions(draft: RequestDraft(head: .checked(request))))
        super.init()
    }

    /// Creates an operation without a request, for a subclass that overrides ``makeRequest()``.
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
        settings = Locked(NetworkOperationOptions(draft: RequestDraft(head: .none)))
        super.init()
    }

    /// Creates an operation without a request and with an evaluator of one parameter, for a subclass that overrides
    /// ``makeRequest()``.
    public init(
        urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: @escaping @Sendable (NetworkResponse<TaskResult>) throws -> ResultType
    ) {
        (session, self.evaluator, responseEvaluator) = (urlSession, nil, evaluator)
        settings = Locked(NetworkOperationOptions(draft: RequestDraft(head: .none)))
        super.init()
    }

    // Hooks.

    /// Creates the request of an attempt.
    ///
    /// The operation calls this method before ``prepareRequest(_:)``, at least once for each attempt. It calls the
    /// method again after the request waited for a credential or for another reason. The method runs on the thread that
    /// starts the operation or that ends the wait.
    ///
    /// The default implementation returns the request that the operation was created with. An operation that was
    /// created without a request fails.
    ///
    /// The operation then adds the headers and the options of a service (see `using(_:)`) and its own
    /// ``transferOptions`` to the returned request.
    ///
    /// - Throws: Any error, which makes the operation fail before it sends anything.
    open func makeRequest() throws -> NetworkRequest {
        if let request = try settings.withLock({ $0.draft }).request() { return request }
        throw NetworkError(
            code: .preparationFailed, phase: .checking,
            message: "\(type(of: self)) has no request. Override makeRequest() without calling super, or create the "
                + "operation with a URL or a request.")
    }

    /// Changes the request before it is sent.
    ///
    /// The operation calls this method after each call of ``makeRequest()``, and sends the request that the method
    /// returns. The default implementation returns the request unchanged.
    ///
    /// If the body is in memory, `request` contains it, so the method can sign it, replace it or remove it. A file or a
    /// stream is not in `request`, and the operation sends it unless the method sets a body.
    ///
    /// - Throws: Any error, which makes the operation fail.
    open func prepareRequest(_ request: URLRequest) throws -> URLRequest { request }

    /// Changes the request asynchronously, for example after a wait for a token or a signature.
    ///
    /// The operation calls this method after each call of ``prepareRequest(_:)``. If the operation is canceled, the
    /// task of this method is canceled too. The default implementation returns the request unchanged.
    open func adapt(_ request: NetworkRequest) async throws -> NetworkRequest { request }

    /// Creates the task of an attempt, which the operation then resumes.
    ///
    /// You may also return a task from `makeTask(with:)` of another session if you have called none of the methods of
    /// the task. Such a task reports to the operation too. If you called one of its methods before, the operation fails
    /// with the code ``NetworkError/Code/unboundTask``. A task with a receiver of your own reports only to that
    /// receiver. Finish the operation yourself in that case.
    ///
    /// You may also return a task of your own type that wraps one of these tasks, under these rules:
    ///
    /// - If the wrapped task is a task of another session, it must be the only task that the hook creates by
    ///   `makeTask(with:)`. Otherwise, the operation fails with ``NetworkError/Code/unboundTask``.
    /// - If your task wraps no task, the hook must create no task by `makeTask(with:)`.
    ///
    /// The operation cannot detect which task you wrap. If the hook also creates a task with the operation's session
    /// and drops it, the operation waits for that task.
    ///
    /// - Parameters:
    ///   - request: The request to send.
    ///   - session: The session of the operation, bound to the operation. A task from `session.makeTask(with:)` reports
    ///     to the operation.
    open func createTask(
        with request: NetworkRequest, using session: any NetworkSession
    ) throws -> any NetworkTask {
        session.makeTask(with: request)
    }

    /// Creates a Foundation task for an attempt, in a subclass that was written for the tasks of a `URLSession`.
    ///
    /// A subclass that overrides the method creates a task with a completion handler. The completion handler calls
    /// ``evaluate(result:response:)`` and `finish(withResult:)`, or `finish(withError:)`, to finish the operation. The
    /// operation calls this method in every attempt. If the method returns `nil`, as the default implementation does,
    /// the operation gets the task from ``createTask(with:using:)-(NetworkRequest,_)``.
    ///
    /// The operation never receives the response to a task of this method. So the operation does only the following for
    /// the task:
    ///
    /// - The operation creates and prepares the request. It uses ``makeRequest()``, ``prepareRequest(_:)``,
    ///   ``adapt(_:)``, the token of an authenticator and the headers of a service.
    /// - The operation resumes the task. It cancels the task when the operation is canceled or when an attempt exceeds
    ///   its time limit (``Retry/attemptTimeout``).
    /// - The operation makes another attempt after an attempt that exceeded its time limit, as far as the retry rule
    ///   allows. The same is true for an error that one of these hooks throws. A `URLError` that this method throws
    ///   counts as a failure of the transfer.
    /// - The operation ends with the first result or error that the completion handler passes to it. It neither retries
    ///   nor refreshes a token, regardless of the error.
    /// - The operation reports no progress. It does not use ``responseRules``, `validate(_:)`, ``emptyResult`` and
    ///   ``makeCollector(for:)``. Check the status in the completion handler. `URLSession` follows redirects and keeps
    ///   cookies by its own rules.
    /// - On Linux, `suspend()` does not suspend a running task.
    ///
    /// To get these features, override ``createTask(with:using:)-(NetworkRequest,_)`` instead. If a subclass only
    /// changes the request or creates the result, override ``prepareRequest(_:)`` or ``evaluate(result:head:)`` and no
    /// form of this method.
    ///
    /// A task that the operation cancels calls its completion handler with `URLError.cancelled`. The completion handler
    /// must not finish the operation in this case, because another attempt may have begun. If you cancel the task or
    /// invalidate the session yourself, cancel the operation as well.
    ///
    /// The `request` parameter contains the body if the body is in memory or a whole file. Any other body makes the
    /// operation fail, unless the task is an upload task, which has its own body.
    ///
    /// The operation does not send the task through its own session. So if the operation has a session of another kind,
    /// such as a `StubSession`, a task from this method makes the operation fail with `preparationFailed`.
    ///
    /// - Parameters:
    ///   - request: The request to send.
    ///   - session: The session that the operation was created with if it is a `URLSession`, or else the shared
    ///     session.
    /// - Returns: A task that was not resumed, or `nil`.
    open func createTask(with request: URLRequest, using session: URLSession) throws -> URLSessionTask? { nil }

    /// Creates the collector that receives the body of a successful response.
    ///
    /// The default implementation supports `Data` and temporary files (`URL`). Override the method for a `TaskResult`
    /// of your own.
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

    /// Creates the result of the operation from the result of the task.
    ///
    /// The method runs on a separate thread. The default implementation calls ``evaluate(result:response:)``, or the
    /// evaluator if the evaluator does not need Foundation's response.
    ///
    /// - Throws: Any error, which makes the operation fail.
    open func evaluate(result: TaskResult, head: ResponseHead) throws -> ResultType {
        // Creating a Foundation response takes longer than decoding a small body.
        if evaluator == nil, isPlain { return try makeResult(of: result, head) }
        return try evaluate(result: result, response: networkAttempts.needResponse(of: head))
    }

    /// Creates the result of the operation from the result of the task and the response in Foundation's form.
    ///
    /// Override one of the two forms. The default implementation creates the result with the evaluator, or from the
    /// types: see ``NetworkOperation``.
    ///
    /// - Throws: Any error, which makes the operation fail.
    open func evaluate(result: TaskResult, response: HTTPURLResponse) throws -> ResultType {
        if let evaluator { return try evaluator(result, response) }
        // An override may have called this method with a response other than the received one.
        let own = networkAttempts.head.flatMap { networkAttempts.response(of: $0) === response ? $0 : nil }
        let head = own ?? networkAttempts.request.flatMap { ResponseHead(response, to: $0) }
        guard let head else {
            throw NetworkError(
                code: .invalidResponse, phase: .evaluating,
                message: "\(type(of: self)) received a response before it sent a request.")
        }
        return try makeResult(of: result, head)
    }

    /// Creates the result without Foundation's response, with an evaluator of one parameter or from the types.
    private func makeResult(of result: TaskResult, _ head: ResponseHead) throws -> ResultType {
        if let responseEvaluator { return try responseEvaluator(NetworkResponse(body: result, head: head)) }
        if let model = decodableResult, let data = result as? Data {
            let makeDecoder = service?.makeDecoder ?? { JSONDecoder() }
            if let made = try DecodedBody.read(model, as: ResultType.self, data, head, makeDecoder) { return made }
        }
        if isTaskResult, let result = result as? ResultType { return result }
        throw missingEvaluator(.evaluating)
    }

    /// The result type, if the operation decodes the body because it has no evaluator.
    private var decodableResult: (any Decodable.Type)? {
        TaskResult.self == Data.self ? ResultType.self as? any Decodable.Type : nil
    }

    /// Whether the result of the task is the result of the operation if there is no evaluator.
    private var isTaskResult: Bool { ResultType.self == TaskResult.self || ResultType.self == TaskResult?.self }

    /// Throws an error before the request is sent, if it is known that no result can be created from the response.
    final func checkEvaluation() throws(NetworkError) {
        guard evaluator == nil, responseEvaluator == nil, makesResultByEvaluator else { return }
        guard decodableResult == nil, !isTaskResult else { return }
        throw missingEvaluator(.checking)
    }

    private func missingEvaluator(_ phase: NetworkError.Phase) -> NetworkError {
        NetworkError(
            code: .evaluationFailed, phase: phase,
            message: "\(type(of: self)) has no evaluator that converts \(TaskResult.self) to \(ResultType.self). "
                + "Give the operation an evaluator, or override evaluate(result:head:).")
    }

    // Options to set before the start.

    /// The rules that a response must satisfy to be accepted.
    ///
    /// When the operation ends, it releases ``ResponseRules/decodeError`` and sets it to `nil`.
    public final var responseRules: ResponseRules {
        get { settings.withLock { $0.rules } }
        set {
            var rules = newValue
            settings.withLock { swap(&$0.rules, &rules) }
            releaseRulesIfEnded()
        }
    }

    /// The options for the transfer of the request, such as its timeouts.
    ///
    /// If you set this property, it replaces the options of the request and the options of an endpoint's base.
    public final var transferOptions: TransferOptions {
        get { ownTransferOptions ?? inheritedTransferOptions }
        set { settings.withLock { $0.draft.options = newValue } }
    }

    /// The options that were set on the operation itself.
    final var ownTransferOptions: TransferOptions? { settings.withLock { $0.draft.options } }

    /// The options that apply if none were set on the operation.
    var inheritedTransferOptions: TransferOptions {
        let (head, service) = settings.withLock { ($0.draft.head, $0.service) }
        if case .checked(let request) = head, request.options != .standard { return request.options }
        return service?.options ?? .standard
    }

    /// Adds a validation rule that can also examine the body.
    ///
    /// An error that the closure throws makes the operation fail. If the error is not a ``NetworkError``, the
    /// operation fails with the code ``NetworkError/Code/responseRefused``.
    @discardableResult
    public final func validate(_ rule: @escaping @Sendable (TaskResult, HTTPURLResponse) throws -> Void) -> Self {
        let kept = NetworkOperationOptions.Kept<Rule>(rule)
        settings.withLock { $0.validators.append(kept) }
        releaseRulesIfEnded()
        return self
    }

    /// Adds a validation rule that can also examine the body, and that does not use Foundation's networking types.
    ///
    /// The rule has one parameter: `{ response in … }`. An error that the closure throws makes the operation fail. If
    /// the error is not a ``NetworkError``, the operation fails with the code ``NetworkError/Code/responseRefused``.
    @discardableResult
    public final func validate(_ rule: @escaping @Sendable (NetworkResponse<TaskResult>) throws -> Void) -> Self {
        let kept = NetworkOperationOptions.Kept<ResponseRule>(rule)
        settings.withLock { $0.validators.append(kept) }
        releaseRulesIfEnded()
        return self
    }

    /// A closure that creates the result for a response without a body.
    ///
    /// A response with the status 204 or 205, a response to a HEAD request, and a response with zero bytes count as
    /// having no body. The default is `nil`, which evaluates such a response like all others. When the operation
    /// ends, it releases the closure.
    public final var emptyResult: (@Sendable () -> ResultType)? {
        get { (settings.withLock { $0.emptyResult } as? NetworkOperationOptions.Kept<EmptyResult>)?.closure }
        set {
            var kept: (any AnyObject & Sendable)? = newValue.map { NetworkOperationOptions.Kept<EmptyResult>($0) }
            settings.withLock { swap(&$0.emptyResult, &kept) }
            releaseRulesIfEnded()
        }
    }

    /// Releases the closures that are no longer called after the end.
    ///
    /// Each of them may hold the operation or any object of the user.
    private func releaseRules() {
        let old = settings.withLock { settings in
            (
                exchange(&settings.validators, with: []), exchange(&settings.emptyResult, with: nil),
                exchange(&settings.rules.decodeError, with: nil)
            )
        }
        withExtendedLifetime(old) {}
    }

    /// Releases a closure that was set after the end, because nothing would release it later.
    private func releaseRulesIfEnded() {
        if outcome != nil { releaseRules() }
    }

    /// The unchanged result of the last task.
    ///
    /// The value is also available if no result could be created from it. The value is `nil` until the result of the
    /// task is complete, and for a response whose status is not accepted.
    ///
    /// A temporary file still exists only if the evaluator left it in place and returned its URL as the result.
    public final var taskResult: TaskResult? {
        (settings.withLock { $0.taken } as? NetworkOperationOptions.Taken<TaskResult>)?.result
    }

    /// The queue on which the operation calls its handlers.
    public final var callbackQueueOfAttempts: DispatchQueue { callbackQueue }

    // The body.

    /// Begins the first attempt.
    public final override func main() {
        askGroups(for: InheritedSettings.self) { settings in
            settings.apply(self)
            return true
        }
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

    /// Whether an attempt begins within a moment, without any code of the user.
    package var isBrief: Bool { false }
    /// Whether the operation's class is one of this package's own classes, without overridden hooks.
    package var isPlain: Bool { false }
    /// Whether it is certain that only an evaluator or the types create the result.
    var makesResultByEvaluator: Bool { isPlain || type(of: self) == NetworkOperation<TaskResult, ResultType>.self }
    /// The service to which the operation belongs.
    final var service: NetworkOperationOptions.Service? {
        hasService.load(ordering: .acquiring) ? settings.withLock { $0.service } : nil
    }
    /// The service whose headers no hook may send to another origin.
    var serviceOfHooks: NetworkOperationOptions.Service? { service }
    /// The session that the operation was created with, or else the session of the service.
    var operationSession: any NetworkSession {
        guard let service, session === DefaultNetworkSession.standard else { return session }
        return service.session
    }
    /// Prepares another attempt.
    ///
    /// This method is called before the task of the attempt is created.
    func prepareAttempt() throws(NetworkError) {}
    /// Returns the session that creates the task of an attempt, on top of the session that sends the request.
    func attemptSession(over session: any NetworkSession) -> any NetworkSession { session }
    /// Throws an error if a collector would receive nothing.
    func check(_ collector: AnyResponseCollector) throws(NetworkError) {}
    /// Calls `fail` when the operation may fail.
    ///
    /// No other attempt begins after this.
    func beforeFailure(_ fail: @escaping @Sendable () -> Void) { fail() }
    /// Notifies the operation that it has its outcome and that no other attempt begins.
    func transfersAreOver() {}

    /// The outcome, for the observers.
    private func ending(received: Int64) -> AttemptStep {
        switch outcome {
        case .success, nil: .ended(.success, nil, nil, received: received)
        case .failure(let error): .ended(.failure, error, nil, received: received)
        case .cancelled(let cause): .ended(.cancelled, nil, cause, received: received)
        }
    }
}
