// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// The part of the operation that the attempts call.
extension NetworkOperation: AttemptOwner {
    package var adaptsRequests: Bool { !hasNoOverrides }

    package func requestOfAttempt() throws -> NetworkRequest {
        try BodyWait.within(self, isHook: true) { try makeRequestOfAttempt() }
    }

    private func makeRequestOfAttempt() throws -> NetworkRequest {
        let (old, options) = settings.withLock { (exchange(&$0.taken, with: nil), $0.draft.options) }
        extendLifetime(old)
        try checkEvaluation()
        var request = try makeRequest()
        if let service { request = try service.completed(request) }
        keepCredentials()
        if let options { request = try request.with(options) }
        if hasNoOverrides { return request }
        let foundation = try prepareRequest(request.foundation)
        let changed = try request.changed(to: foundation)
        settings.release { exchange(&$0.prepared, with: (foundation, changed)) }
        return checked(changed, madeOf: request)
    }

    /// Restricts the credentials of realms without origins to the origin of the operation's base, because a class, a
    /// hook or a change may send the request to another origin.
    private func keepCredentials() {
        guard let agent = networkAttempts.policies?[.credential], let base = serviceOfHooks else { return }
        // The operation of an endpoint may also use another base. The realms can be those of either base, so no other
        // origin and no second base gets their credentials.
        let isOnlyOrigin = service.map { $0.origin == base.origin } ?? true
        agent.keepCredentials(at: isOnlyOrigin ? base.origin : nil)
    }

    package func checked(_ changed: NetworkRequest, madeOf request: NetworkRequest) -> NetworkRequest {
        serviceOfHooks?.checked(changed, madeOf: request) ?? changed
    }

    package func adaptRequest(_ request: NetworkRequest) async throws -> NetworkRequest {
        let task = BodyTasks.begin(self)
        defer { BodyTasks.end(task, of: self) }
        return checked(try await adapt(request), madeOf: request)
    }

    package var exchangeOfAttempts: ExchangeSession? { operationSession.exchange }

    package func makeTask(_ request: NetworkRequest, _ receiver: AttemptReceiver) throws -> any NetworkTask {
        try prepareAttempt()
        let session = attemptSession(over: operationSession)
        if hasNoOverrides { return session.followingRedirects.makeTask(with: request, receiver: receiver) }
        return try BodyWait.within(self, isHook: true) { try makeTask(request, receiver, session) }
    }

    /// Gets the task from the hooks of a subclass.
    private func makeTask(
        _ request: NetworkRequest, _ receiver: AttemptReceiver, _ session: any NetworkSession
    ) throws -> any NetworkTask {
        if let task = try olderTask(request) {
            if let error = refusal(of: task, for: request) {
                // The task's completion handler may finish the operation, so the error must come first.
                observe(on: .global()) { _ in task.cancel() }
                throw error
            }
            return FoundationTask(task)
        }
        let bound = BoundSession(session.followingRedirects, receiver)
        return try TaskCreation().run(receiver, { attemptSession(over: $0) }) {
            try createTask(with: request, using: bound)
        }
    }

    /// Calls the older form of the hook.
    ///
    /// Swift cannot detect whether a class overrides it, and an override may call `super` for some requests only. So
    /// every attempt calls it, with the request that `prepareRequest` returned.
    private func olderTask(_ request: NetworkRequest) throws -> URLSessionTask? {
        let prepared = settings.withLock { exchange(&$0.prepared, with: nil) }
        let session = operationSession as? URLSession ?? .shared
        do {
            return try createTask(with: request.foundationWithBody(prepared), using: session)
        } catch let error as URLError {
            // An error of the hook counts as a failure of the transfer.
            throw NetworkError(error)
        }
    }

    /// The reason why a task of the older hook must not be started, or nil if it can be started.
    private func refusal(of task: URLSessionTask, for request: NetworkRequest) -> NetworkError? {
        guard operationSession.isOfPlatform else {
            return NetworkError(
                code: .preparationFailed, phase: .waiting,
                message:
                    "A URLSessionTask from createTask(with:using:) needs a URLSession, but the operation's session is "
                    + "a \(type(of: operationSession)). Override the form of createTask(with:using:) with a "
                    + "NetworkRequest, or give the operation a URLSession.")
        }
        // An upload task has its own body.
        guard !request.losesBodyInFoundation || task is URLSessionUploadTask else {
            return NetworkError(
                code: .unsupportedBody, phase: .waiting,
                message:
                    "A URLSessionTask from createTask(with:using:) cannot send a stream or a part of a file. Override "
                    + "the form with a NetworkRequest, create an upload task, or send data or a whole file.")
        }
        return nil
    }

    package func makeCollectorOfAttempt(for head: ResponseHead) throws -> any AnyResponseCollector {
        let rules = responseRules
        guard rules.accepts(head) else { return ErrorBodyCollector(limit: rules.keptErrorBytes) }
        let collector = try BodyWait.within(self, isHook: true) { try makeCollector(for: head) }
        try check(collector)
        return collector
    }

    package func accepts(_ head: ResponseHead) -> Bool { responseRules.accepts(head) }

    package var errorBodyBytes: Int { responseRules.errorBodyBytes }

    package var evaluatesBriefly: Bool {
        decodesByItself
            && settings.withLock { $0.validators.isEmpty && $0.emptyResult == nil && $0.otherRules?.decodeError == nil }
    }

    package func evaluate(_ answer: ReceivedResponse) throws -> Work {
        try BodyWait.within(self, isHook: true) { try checkAndEvaluate(answer) }
    }

    private func checkAndEvaluate(_ answer: ReceivedResponse) throws -> Work {
        let (rules, validators, mayBeEmpty) = settings.withLock { ($0.rules, $0.validators, $0.emptyResult != nil) }
        let isEmpty = !answer.mayHaveBody || networkAttempts.receivedCount == 0 && answer.collector.mayBeEmpty
        try rules.check(answer, isEmpty: isEmpty) { networkAttempts.response(of: answer.head) }
        if mayBeEmpty, isEmpty, let emptyResult {
            let result = emptyResult()
            return Work { [self] in finish(withResult: result) }
        }
        guard let collector = answer.collector as? ResponseCollector<TaskResult> else {
            throw NetworkError(
                code: .evaluationFailed, phase: .evaluating,
                message: "The collector does not produce a value of type \(TaskResult.self).")
        }
        let taken = try collector.finish()
        let kept = Box(taken)
        settings.withLock { $0.taken = kept }
        for validator in validators {
            if let rule = (validator as? Box<ResponseRule>)?.value {
                try Self.check { try rule(NetworkResponse(body: taken, head: answer.head)) }
            }
            guard let rule = (validator as? Box<Rule>)?.value else { continue }
            let response = try networkAttempts.needResponse(of: answer.head)
            try Self.check { try rule(taken, response) }
        }
        let result = try evaluate(result: taken, head: answer.head)
        guard let file = collector.temporaryFile else {
            return Work { [self] in finish(withResult: result) }
        }
        return Work { [self] in
            guard file.isNamed(by: result) else {
                // The receiver of the result finds that the file is gone.
                file.remove()
                return finish(withResult: result)
            }
            finish(withResult: result)
            // The file now belongs to the user, unless the operation was canceled in the meantime.
            if case .success(let kept) = outcome, file.isNamed(by: kept) { file.handOver() } else { file.remove() }
        }
    }

    /// Runs a user's rule, and throws `responseRefused` for an error that is not a ``NetworkError``.
    private static func check(_ rule: () throws -> Void) throws {
        do { try rule() } catch let error as NetworkError { throw error } catch {
            var refusal = NetworkError(
                code: .responseRefused, phase: .evaluating, message: "A validate(_:) rule rejected the response.")
            refusal.cause = error
            throw refusal
        }
    }

    package func notifyDelegateOfEnd() {
        guard isOutcomeReported, let listeners = networkAttempts.reporter.takeListenersOfEnd() else { return }
        let (operation, isCancelled) = (listeners.operation, isCancelled)
        func call(on queue: DispatchQueue, _ delegate: any NetworkOperationDelegate) {
            let call = { @Sendable in operation.notifyOfEnd(delegate) }
            if isCancelled { queue.async(execute: call) } else { operation.enqueueHandler(on: queue, call) }
        }
        if let delegate = listeners.delegate { call(on: callbackQueue, delegate) }
        if let callbacks = listeners.callbacks {
            call(on: .main, callbacks)
            // A cancellation may silence the notification, and the closures may capture the operation.
            DispatchQueue.main.async { callbacks.release() }
        }
    }

    package func notifyOfEnd(_ delegate: any NetworkOperationDelegate) {
        switch outcome {
        case .success: delegate.networkOperation(self, didFinishWith: nil)
        case .failure(let error): delegate.networkOperation(self, didFinishWith: error)
        case .cancelled(let cause): delegate.networkOperation(self, wasCancelledBecause: cause)
        case nil: break
        }
    }

    package var anyTaskResult: Any? { taskResult }

    package var outcomeOfAnyType: OperationOutcome<any Sendable, NetworkError>? {
        switch outcome {
        case .success(let result): .success(result)
        case .failure(let error): .failure(error)
        case .cancelled(let cause): .cancelled(cause)
        case nil: nil
        }
    }

    package func fail(with error: NetworkError) {
        beforeFailure { [self] in finish(withError: error) }
    }
}
