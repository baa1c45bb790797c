// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
@_spi(Subclassing) import OperationCore
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An operation that sends a request and creates its result from the response.
///
/// In most cases, use one of the three subclasses ``NetworkDataOperation``, ``NetworkDownloadOperation`` and
/// ``NetworkUploadOperation``:
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
/// To change a step of many operations, create a subclass of this class or of one of the three subclasses, and override
/// a hook:
///
/// - ``makeRequest()`` creates the request.
/// - ``prepareRequest(_:)`` changes the request synchronously.
/// - ``adapt(_:)`` changes the request asynchronously, for example after it gets a token.
/// - ``createTask(with:using:)-(NetworkRequest,_)`` creates the task.
/// - ``makeCollector(for:)`` creates the collector of the response body. Override this hook if `TaskResult` is neither
///   `Data` nor `URL`.
/// - ``evaluate(result:head:)`` or ``evaluate(result:response:)`` creates the result.
///
/// The operation calls these hooks in each attempt. If the request waits, for example for a credential, the operation
/// calls ``makeRequest()``, ``prepareRequest(_:)`` and ``adapt(_:)`` again after the wait.
///
/// The ``makeRequest()`` and ``prepareRequest(_:)`` hooks run on the thread that starts the operation, or later on any
/// thread. The ``adapt(_:)`` hook runs in Swift's cooperative thread pool. Unless you start or resume the operation on a
/// session's thread, these hooks and the `evaluate` hooks never run on that thread, so they cannot block it.
///
/// ### Without an evaluator
///
/// If an operation has no evaluator, its type parameters `TaskResult` and `ResultType` determine the result:
///
/// - If `TaskResult` and `ResultType` are the same type, as in `NetworkDataOperation<Data>` and
///   `NetworkDownloadOperation<URL>`, the result is the body or the URL of the file.
/// - If `ResultType` is `Decodable` and the body is in memory, the operation decodes the body by the same rules as
///   ``Endpoint``. For example, it decodes JSON for a custom type.
///
/// For any other type, such as `Void`, an operation fails when it starts, without sending a request, unless it is an
/// instance of a custom subclass. If the response has no relevant content, use ``NoContent`` as the result type.
///
/// The operation cannot detect whether a custom subclass overrides a hook. If an instance of a custom subclass has
/// neither an evaluator nor an `evaluate` hook, the instance fails only when the response is complete.
///
/// Once an operation has begun its first attempt, it stays in memory until it ends, even if you keep no reference to
/// it. To also keep an operation in memory while it waits to begin, start it with `startAndKeepAlive()`.
///
/// A canceled network operation always ends immediately. An override of `windsDownAfterCancellation` has no effect.
///
/// Guide: `Docs/Guides/NetworkOperations.md`
open class NetworkOperation<TaskResult, ResultType: Sendable>: AsyncOperation<ResultType, NetworkError>,
    AnyNetworkOperation, @unchecked Sendable
{
    // Sendable: all mutable state is behind locks.

    /// A closure that creates the result of the operation from the result of its network task and an `HTTPURLResponse`.
    public typealias Evaluator = @Sendable (TaskResult, HTTPURLResponse) throws -> ResultType

    typealias ResponseEvaluator = @Sendable (NetworkResponse<TaskResult>) throws -> ResultType
    typealias Rule = @Sendable (TaskResult, HTTPURLResponse) throws -> Void
    typealias ResponseRule = @Sendable (NetworkResponse<TaskResult>) throws -> Void
    typealias EmptyResult = @Sendable () -> ResultType

    /// The object that performs the attempts of the operation.
    package final let networkAttempts = NetworkAttempts()
    private let session: any NetworkSession
    // At most one of these two closures is set.
    private let evaluator: Evaluator?
    private let responseEvaluator: ResponseEvaluator?
    let settings: Locked<NetworkOperationOptions>
    /// Whether there is an ``NetworkOperationOptions/service``.
    ///
    /// Operations without a service do not need to take the lock.
    let hasService = Atomic(false)
    /// Whether the class is one of the package's own classes (1 or 0), or -1 before the first comparison.
    private let ownClass = Atomic<Int8>(-1)

    init(
        _ draft: RequestDraft, _ session: any NetworkSession, _ evaluator: Evaluator?,
        _ responseEvaluator: ResponseEvaluator? = nil
    ) {
        (self.session, self.evaluator, self.responseEvaluator) = (session, evaluator, responseEvaluator)
        settings = Locked(NetworkOperationOptions(draft: draft))
        super.init()
    }

    // A subclass inherits these initializers, and may call each of them, only if none of them calls another.

    /// Creates an operation that sends a GET request to a URL, with an evaluator that receives an `HTTPURLResponse`.
    ///
    /// - Parameters:
    ///   - url: The URL of the request.
    ///   - urlSession: The session that sends the request, such as `.shared` or a `URLSession`. The default is
    ///     ``DefaultNetworkSession/standard``.
    ///   - evaluator: A closure that creates the result and never runs on a session's thread. The default is `nil`. For
    ///     the result of an operation without an evaluator, see ``NetworkOperation``.
    public init(
        url: URL, urlSession: any NetworkSession = DefaultNetworkSession.standard, evaluator: Evaluator? = nil
    ) {
        (session, self.evaluator, responseEvaluator) = (urlSession, evaluator, nil)
        settings = Locked(NetworkOperationOptions(draft: RequestDraft(head: .url(url))))
        super.init()
    }

    /// Creates an operation that sends a GET request to a URL, with an evaluator that receives a ``NetworkResponse``.
    ///
    /// For example, pass the evaluator `{ response in response.body.count }`.
    ///
    /// - Parameters:
    ///   - url: The URL of the request.
    ///   - urlSession: The session that sends the request, such as `.shared` or a `URLSession`. The default is
    ///     ``DefaultNetworkSession/standard``.
    ///   - evaluator: A closure that creates the result and never runs on a session's thread. If the closure throws an
    ///     error, the attempt fails.
    public init(
        url: URL, urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: @escaping @Sendable (NetworkResponse<TaskResult>) throws -> ResultType
    ) {
        (session, self.evaluator, responseEvaluator) = (urlSession, nil, evaluator)
        settings = Locked(NetworkOperationOptions(draft: RequestDraft(head: .url(url))))
        super.init()
    }

    /// Creates an operation that sends a `URLRequest`, with an evaluator that receives an `HTTPURLResponse`.
    ///
    /// - Parameters:
    ///   - request: The request to send. If the request is not valid, the operation fails.
    ///   - urlSession: The session that sends the request, such as `.shared` or a `URLSession`. The default is
    ///     ``DefaultNetworkSession/standard``.
    ///   - evaluator: A closure that creates the result and never runs on a session's thread. The default is `nil`. For
    ///     the result of an operation without an evaluator, see ``NetworkOperation``.
    public init(
        request: URLRequest, urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: Evaluator? = nil
    ) {
        (session, self.evaluator, responseEvaluator) = (urlSession, evaluator, nil)
        settings = Locked(NetworkOperationOptions(draft: RequestDraft(head: .foundation(request))))
        super.init()
    }

    /// Creates an operation that sends a `URLRequest`, with an evaluator that receives a ``NetworkResponse``.
    ///
    /// - Parameters:
    ///   - request: The request to send. If the request is not valid, the operation fails.
    ///   - urlSession: The session that sends the request, such as `.shared` or a `URLSession`. The default is
    ///     ``DefaultNetworkSession/standard``.
    ///   - evaluator: A closure that creates the result and never runs on a session's thread. If the closure throws an
    ///     error, the attempt fails.
    public init(
        request: URLRequest, urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: @escaping @Sendable (NetworkResponse<TaskResult>) throws -> ResultType
    ) {
        (session, self.evaluator, responseEvaluator) = (urlSession, nil, evaluator)
        settings = Locked(NetworkOperationOptions(draft: RequestDraft(head: .foundation(request))))
        super.init()
    }

    /// Creates an operation that sends a ``NetworkRequest``, with an evaluator that receives an `HTTPURLResponse`.
    ///
    /// - Parameters:
    ///   - request: The request to send.
    ///   - urlSession: The session that sends the request, such as `.shared` or a `URLSession`. The default is
    ///     ``DefaultNetworkSession/standard``.
    ///   - evaluator: A closure that creates the result and never runs on a session's thread. The default is `nil`. For
    ///     the result of an operation without an evaluator, see ``NetworkOperation``.
    public init(
        request: NetworkRequest, urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: Evaluator? = nil
    ) {
        (session, self.evaluator, responseEvaluator) = (urlSession, evaluator, nil)
        settings = Locked(NetworkOperationOptions(draft: RequestDraft(head: .checked(request))))
        super.init()
    }

    /// Creates an operation that sends a ``NetworkRequest``, with an evaluator that receives a ``NetworkResponse``.
    ///
    /// - Parameters:
    ///   - request: The request to send.
    ///   - urlSession: The session that sends the request, such as `.shared` or a `URLSession`. The default is
    ///     ``DefaultNetworkSession/standard``.
    ///   - evaluator: A closure that creates the result and never runs on a session's thread. If the closure throws an
    ///     error, the attempt fails.
    public init(
        request: NetworkRequest, urlSession: any NetworkSession = DefaultNetworkSession.standard,
        evaluator: @escaping @Sendable (NetworkResponse<TaskResult>) throws -> ResultType
    ) {
        (session, self.evaluator, responseEvaluator) = (urlSession, nil, evaluator)
        settings = Locked(NetworkOperationOptions(draft: RequestDraft(head: .checked(request))))
        super.init()
    }

    /// Creates an operation that gets its request from ``makeRequest()`` and can evaluate the response with a closure
    /// that receives an `HTTPURLResponse`.
    ///
    /// Call this initializer in a subclass that overrides ``makeRequest()``. For example, an abstract base class can
    /// store the URL of a service and create the request of each subclass in ``makeRequest()``:
    ///
    /// ```swift
    /// class ShopOperation<ResultType: Sendable>: NetworkDataOperation<ResultType>,
    ///     @unchecked Sendable
    /// {
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
    ///
    /// - Parameters:
    ///   - urlSession: The session that sends the request, such as `.shared` or a `URLSession`. The default is
    ///     ``DefaultNetworkSession/standard``.
    ///   - evaluator: A closure that creates the result and never runs on a session's thread. The default is `nil`. For
    ///     the result of an operation without an evaluator, see ``NetworkOperation``.
    public init(urlSession: any NetworkSession = DefaultNetworkSession.standard, evaluator: Evaluator? = nil) {
        (session, self.evaluator, responseEvaluator) = (urlSession, evaluator, nil)
        settings = Locked(NetworkOperationOptions(draft: RequestDraft(head: .none)))
        super.init()
    }

    /// Creates an operation that gets its request from ``makeRequest()`` and evaluates the response with a closure that
    /// receives a ``NetworkResponse``.
    ///
    /// Call this initializer in a subclass that overrides ``makeRequest()``.
    ///
    /// - Parameters:
    ///   - urlSession: The session that sends the request, such as `.shared` or a `URLSession`. The default is
    ///     ``DefaultNetworkSession/standard``.
    ///   - evaluator: A closure that creates the result and never runs on a session's thread. If the closure throws an
    ///     error, the attempt fails.
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
    /// The operation calls this method at least once for each attempt, before ``prepareRequest(_:)``. If the request
    /// waits, for example for a credential, the operation calls the method again after the wait. The method runs on the
    /// thread that starts the operation, or later on any thread.
    ///
    /// The default implementation returns the request that you passed to the initializer. If you created the operation
    /// without a request, the operation fails.
    ///
    /// After the method returns, the operation adds its own ``transferOptions`` to the request, as well as the headers
    /// and options of a service that you set with `using(_:)`.
    ///
    /// - Throws: Any error. The attempt then fails before the operation sends a request.
    /// - Returns: The request to send.
    open func makeRequest() throws -> NetworkRequest {
        if let request = try settings.withLock({ $0.draft }).request() { return request }
        throw NetworkError(
            code: .preparationFailed, phase: .checking,
            message: "\(type(of: self)) has no request. Override makeRequest() without calling super, or create the "
                + "operation with a URL or a request.")
    }

    /// Changes the request of an attempt synchronously before the operation sends it.
    ///
    /// The operation calls this method after each call to ``makeRequest()`` and continues with the request that the
    /// method returns. The default implementation returns the request unchanged.
    ///
    /// If the body is in memory, `request` contains the body, and the method can sign, replace or remove the body. If
    /// the body is a file or a stream, `request` does not contain the body, and the operation sends the original body
    /// unless the method sets another body.
    ///
    /// - Parameter request: The request of the attempt as a Foundation `URLRequest`.
    /// - Throws: Any error. The attempt then fails.
    /// - Returns: The request to send.
    open func prepareRequest(_ request: URLRequest) throws -> URLRequest { request }

    /// Changes the request of an attempt asynchronously before the operation sends it, for example to add a token.
    ///
    /// The operation calls this method after each call to ``prepareRequest(_:)``. If you cancel the operation, it
    /// cancels the Swift task that runs this method. The default implementation returns the request unchanged.
    ///
    /// - Parameter request: The request that ``prepareRequest(_:)`` returned.
    /// - Throws: Any error. The attempt then fails.
    /// - Returns: The request to send.
    open func adapt(_ request: NetworkRequest) async throws -> NetworkRequest { request }

    /// Creates the network task for an attempt.
    ///
    /// The operation resumes the task after this method returns. The default implementation returns a task from
    /// `session.makeTask(with:)`. An override can also return one of these tasks:
    ///
    /// - A task from another session's `makeTask(with:)` method. If the override has already called a method of the
    ///   task, the operation fails with ``NetworkError/Code/unboundTask``.
    /// - A task that you create with ``NetworkSession/makeTask(with:receiver:)`` and your own ``NetworkReceiver``. The
    ///   operation does not receive the response, so your code must finish the operation.
    /// - A task of your own type, which may wrap one of these tasks. If the task wraps none of them, your code must
    ///   finish the operation.
    ///
    /// If the override returns a task of your own type, these rules apply:
    ///
    /// - If your task wraps a task from another session, the override must not create another task with
    ///   `makeTask(with:)`. Otherwise, the operation fails with ``NetworkError/Code/unboundTask``.
    /// - If your task does not wrap another task, the override must not create a task with `makeTask(with:)`.
    ///   Otherwise, the operation treats the created task as the one that your task wraps, and waits for the response
    ///   to the created task.
    ///
    /// The override must not create a task with the operation's session and discard the task, because the operation
    /// would wait for that task.
    ///
    /// - Parameters:
    ///   - request: The request to send.
    ///   - session: The session of the operation. If you create the task with `session.makeTask(with:)`, the operation
    ///     receives the response to the task.
    /// - Throws: Any error. The attempt then fails.
    open func createTask(
        with request: NetworkRequest, using session: any NetworkSession
    ) throws -> any NetworkTask {
        session.makeTask(with: request)
    }

    /// Creates a `URLSessionTask` for an attempt, in a subclass that handles the response in a completion handler.
    ///
    /// To finish the operation, the completion handler of the task calls ``evaluate(result:response:)`` and
    /// `finish(withResult:)`, or `finish(withError:)`. The operation calls this method in each attempt. If the method
    /// returns `nil`, as the default implementation does, the operation calls
    /// ``createTask(with:using:)-(NetworkRequest,_)``.
    ///
    /// If a subclass only changes the request or creates the result, override ``prepareRequest(_:)`` or
    /// ``evaluate(result:head:)`` instead of this method.
    ///
    /// The operation does not receive the response to the task, so most features of the operation are not available.
    /// The following rules apply:
    ///
    /// - The operation calls ``makeRequest()``, ``prepareRequest(_:)`` and ``adapt(_:)``. The operation also adds an
    ///   authenticator's credential and a service's headers.
    /// - The operation resumes the task, so return a task that you have not resumed. The operation cancels the task if
    ///   you cancel the operation, or if the attempt exceeds ``Retry/attemptTimeout``.
    /// - The operation can make another attempt only if an attempt exceeds its timeout, or if this method or a hook
    ///   that prepares the request throws an error. A `URLError` from this method counts as a transfer failure.
    /// - The operation ends with the first result or error from the completion handler and does not make another
    ///   attempt or refresh a credential.
    /// - The operation does not report progress and ignores ``responseRules``, `validate(_:)`, ``emptyResult`` and
    ///   ``makeCollector(for:)``. The completion handler must check the status code. The `URLSession` determines how
    ///   redirects and cookies work.
    /// - On Linux, `suspend()` does not suspend a task that is running.
    ///
    /// To use all features, override ``createTask(with:using:)-(NetworkRequest,_)`` instead.
    ///
    /// If the operation cancels the task, the completion handler receives `URLError.cancelled`. In this case, the
    /// completion handler must not finish the operation, because another attempt might have begun. If you cancel the
    /// task or invalidate the session yourself, also cancel the operation.
    ///
    /// The `request` parameter contains the body if the body is in memory or is a whole file. With any other body, the
    /// operation fails, unless the task is an upload task, which has its own body.
    ///
    /// The task uses the operation's session only if that session is a `URLSession`. If the operation's session sends
    /// requests through neither a `URLSession` nor libcurl, like a `StubSession`, the operation fails with
    /// ``NetworkError/Code/preparationFailed``.
    ///
    /// - Parameters:
    ///   - request: The request to send.
    ///   - session: The session of the operation if it is a `URLSession`; otherwise, `URLSession.shared`.
    /// - Throws: Any error. The attempt then fails.
    /// - Returns: A task that you have not resumed, or `nil`.
    open func createTask(with request: URLRequest, using session: URLSession) throws -> URLSessionTask? { nil }

    /// Creates the collector that receives the body of a response that the operation accepts.
    ///
    /// The default implementation supports the `TaskResult` types `Data` and `URL`. For `URL`, it creates a temporary
    /// file. For any other `TaskResult`, override this method.
    ///
    /// - Parameter head: The status and the headers of the response.
    /// - Throws: Any error. The attempt then fails.
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

    /// Creates the result of the operation from the result of the network task and the status and headers of the
    /// response.
    ///
    /// The method never runs on a session's thread. The default implementation calls the evaluator or
    /// ``evaluate(result:response:)``.
    ///
    /// - Parameters:
    ///   - result: The result of the network task, such as the response body or the URL of the file that contains the
    ///     body.
    ///   - head: The status and the headers of the response.
    /// - Throws: Any error. The attempt then fails.
    open func evaluate(result: TaskResult, head: ResponseHead) throws -> ResultType {
        // Creating a Foundation response takes longer than decoding a small body.
        if evaluator == nil, hasNoOverrides { return try makeResult(of: result, head) }
        return try evaluate(result: result, response: networkAttempts.needResponse(of: head))
    }

    /// Creates the result of the operation from the result of the network task and an `HTTPURLResponse`.
    ///
    /// Override this method or ``evaluate(result:head:)``, but not both. The method never runs on a session's thread.
    /// The default implementation calls the evaluator, or follows the rules in the section "Without an evaluator" of
    /// ``NetworkOperation``.
    ///
    /// - Parameters:
    ///   - result: The result of the network task, such as the response body or the URL of the file that contains the
    ///     body.
    ///   - response: The status and the headers of the response.
    /// - Throws: Any error. The attempt then fails.
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
        if ResultType.self == TaskResult.self, let result = result as? ResultType { return result }
        if let model = decodableResult, let data = result as? Data {
            let makeDecoder = service?.makeDecoder ?? { JSONDecoder() }
            if let made = try DecodedBody.read(model, as: ResultType.self, data, head, makeDecoder) { return made }
        }
        if ResultType.self == TaskResult?.self, let result = result as? ResultType { return result }
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

    /// The rules that a response must satisfy, such as the accepted status codes and content types.
    ///
    /// When the operation ends, it sets the ``ResponseRules/decodeError`` of these rules to `nil`.
    public final var responseRules: ResponseRules {
        get { settings.withLock { $0.rules } }
        set { setRules(Boxed(wrappedValue: newValue)) }
    }

    /// Sets the rules, or the default rules for an empty box.
    final func setRules(_ rules: Boxed<ResponseRules>) {
        settings.release { exchange(&$0.$otherRules, with: rules) }
        releaseRulesIfEnded()
    }

    /// The options for the transfer of the request, such as its timeouts.
    ///
    /// If you set this property, the new options replace the options of the request and of a ``NetworkBase``.
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

    /// Adds a validation rule that receives the result of the network task and an `HTTPURLResponse`.
    ///
    /// If the closure throws a ``NetworkError``, the attempt fails with that error. If it throws another error, the
    /// attempt fails with ``NetworkError/Code/responseRefused``.
    ///
    /// - Parameter rule: A closure that throws an error if the response is not valid. The operation can call the
    ///   closure on any thread.
    @discardableResult
    public final func validate(_ rule: @escaping @Sendable (TaskResult, HTTPURLResponse) throws -> Void) -> Self {
        let kept = Box<Rule>(rule)
        settings.withLock { $0.validators.append(kept) }
        releaseRulesIfEnded()
        return self
    }

    /// Adds a validation rule that receives a ``NetworkResponse``.
    ///
    /// If the closure throws a ``NetworkError``, the attempt fails with that error. If it throws another error, the
    /// attempt fails with ``NetworkError/Code/responseRefused``.
    ///
    /// - Parameter rule: A closure that throws an error if the response is not valid. The operation can call the
    ///   closure on any thread.
    @discardableResult
    public final func validate(_ rule: @escaping @Sendable (NetworkResponse<TaskResult>) throws -> Void) -> Self {
        let kept = Box<ResponseRule>(rule)
        settings.withLock { $0.validators.append(kept) }
        releaseRulesIfEnded()
        return self
    }

    /// A closure that creates the result for a response without a body.
    ///
    /// A response has no body if its status is 204, 205 or 304, if the method of the request is `HEAD`, or if the body
    /// has a length of 0. The default is `nil`, which makes the operation evaluate these responses like all other
    /// responses. When the operation ends, it releases the closure.
    ///
    /// The operation can call the closure on any thread.
    public final var emptyResult: (@Sendable () -> ResultType)? {
        get { (settings.withLock { $0.emptyResult } as? Box<EmptyResult>)?.value }
        set {
            var kept: (any AnyObject & Sendable)? = newValue.map { Box<EmptyResult>($0) }
            settings.withLock { swap(&$0.emptyResult, &kept) }
            releaseRulesIfEnded()
        }
    }

    /// Releases the closures that are no longer called after the end.
    ///
    /// Each of them may hold the operation or any object of the user.
    private func releaseRules() {
        settings.release { settings in
            (
                exchange(&settings.validators, with: []), exchange(&settings.emptyResult, with: nil),
                settings.releaseErrorDecoder()
            )
        }
    }

    /// Releases a closure that was set after the end, because nothing would release it later.
    private func releaseRulesIfEnded() {
        if hasOutcome { releaseRules() }
    }

    /// The result of the last network task, such as the response body, or `nil` if the result is not available.
    ///
    /// The value is available even if the operation could not create its own result from the value. The value is `nil`
    /// if the result of the network task is incomplete, or if the operation does not accept the status code or the
    /// content type. The value is also `nil` if ``emptyResult`` creates the operation's result.
    ///
    /// If the value is the URL of a temporary file, the file exists only if the evaluator returned this URL and did not
    /// move the file.
    public final var taskResult: TaskResult? {
        (settings.withLock { $0.taken } as? Box<TaskResult>)?.value
    }

    // The body.

    /// Begins the first attempt of the operation.
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
        networkAttempts.end(of: self) { (outcome?.error, outcome?.cancellationCause) }
        transfersAreOver()
        if networkAttempts.reporter.end() {
            notifyDelegateOfEnd()
            networkAttempts.reporter.releaseHandlers(on: { callbackQueue })
        }
        releaseRules()
    }

    // After a cancellation, the attempts stop and report nothing, so nothing would end an operation that winds down.
    @_spi(Subclassing) public final override var canWindDown: Bool { false }

    @_spi(Subclassing) public final override var attachment: AnyObject? { networkAttempts }

    @_spi(Subclassing) public final override var isBodyBrief: Bool { isBrief }

    @_spi(Subclassing) public final override var beginsInTask: Bool {
        isBrief && hasBodyInMemory && !networkAttempts.isObserved.load(ordering: .relaxed)
    }

    /// Whether it is certain that the body, if there is one, is in memory, so that no code of the user creates it.
    var hasBodyInMemory: Bool { settings.withLock { $0.draft.hasBodyInMemory } }

    /// Whether an attempt begins within a moment and without hooks.
    ///
    /// The attempt may call closures of policies and encode the query.
    package var isBrief: Bool { false }
    /// Whether the purpose of the operation is a file, even if its request has a body.
    package var isDownload: Bool { false }
    /// Whether the operation's class is one of this package's own classes, without overridden hooks.
    package final var hasNoOverrides: Bool {
        let known = ownClass.load(ordering: .relaxed)
        if known >= 0 { return known == 1 }
        let isOwn = isOfOwnClass
        ownClass.store(isOwn ? 1 : 0, ordering: .relaxed)
        return isOwn
    }
    /// Compares the operation's class with the package's own classes.
    ///
    /// The comparison is slow in a generic class, so ``hasNoOverrides`` keeps the result.
    package var isOfOwnClass: Bool { false }
    /// Whether the operation is an `EndpointOperation` of the package's own class without closures that create the
    /// result.
    package var decodesByItself: Bool { false }
    /// Whether it is certain that only an evaluator or the types create the result.
    var makesResultByEvaluator: Bool {
        hasNoOverrides || type(of: self) == NetworkOperation<TaskResult, ResultType>.self
    }
    /// The service to which the operation belongs.
    final var service: NetworkOperationOptions.Service? {
        hasService.load(ordering: .acquiring) ? settings.withLock { $0.service } : nil
    }
    /// The service whose headers and credentials no hook and no change may send to another origin.
    var serviceOfHooks: NetworkOperationOptions.Service? { service }
    /// The session that the operation was created with, or the session of the service.
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
    func check(_ collector: any AnyResponseCollector) throws(NetworkError) {}
    /// Calls `fail` when the operation may fail.
    ///
    /// No other attempt begins after this.
    func beforeFailure(_ fail: @escaping @Sendable () -> Void) { fail() }
    /// Notifies the operation that it has its outcome and that no other attempt begins.
    func transfersAreOver() {}
}
