// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit

/// A bench for operations with retry, whose clock and random values the test controls.
struct RetryBench: Sendable {
    let bench: OperationBench
    let clock = ManualClock()

    init() throws {
        bench = try OperationBench()
    }

    /// The default retry with its longest pauses and its own budget.
    func retry(_ change: (inout Retry) -> Void = { _ in }) -> Retry {
        var retry = Retry(budget: RetryBudget(clock: clock))
        retry.chance = { 1 }
        change(&retry)
        return retry
    }

    /// An operation that sends a body and returns the response as text.
    func text(_ retry: Retry?, method: String = "GET", body: RequestBody = .none) -> NetworkUploadOperation<String> {
        driven(bench.upload(method: method, body: body), retry)
    }

    /// Configures retry for the operation.
    ///
    /// Its pauses end as soon as they begin, and are recorded.
    func driven<Result, Value: Sendable, Kind: NetworkOperation<Result, Value>>(
        _ operation: Kind, _ retry: Retry?, pauses: EventRecorder<Duration>? = nil
    ) -> Kind {
        let operation = bench.watched(operation)
        operation.clock = clock
        operation.retry = retry
        operation.endPauses(clock, pauses)
        return operation
    }

    /// Configures retry for an operation that advances only when the test moves the clock.
    func undriven<Result, Value: Sendable, Kind: NetworkOperation<Result, Value>>(
        _ operation: Kind, _ retry: Retry?
    ) -> Kind {
        let operation = bench.watched(operation)
        operation.clock = clock
        operation.retry = retry
        return operation
    }

    /// Waits until the operation pauses before its next attempt.
    func pause(of operation: any AnyNetworkOperation) async throws {
        try await TestThread.run {
            while !operation.isFinished, !operation.networkAttempts.isWaitingForTime { sched_yield() }
        }
    }
}

extension NetworkOperation {
    /// Moves the clock to the end of each pause.
    func endPauses(_ clock: ManualClock, _ pauses: EventRecorder<Duration>? = nil) {
        addNetworkObserver(
            Watcher { [weak self] event in
                guard case .again(let pause)? = event.decision?.decision else { return }
                pauses?.record(pause)
                Thread.detachNewThread { [weak self] in
                    while let self, !self.isFinished, !self.networkAttempts.isWaitingForTime { sched_yield() }
                    clock.advance(by: pause)
                }
            })
    }
}

/// An operation whose hooks change the request.
final class Hooked: NetworkUploadOperation<String>, @unchecked Sendable {
    typealias Make = @Sendable (NetworkRequest, any NetworkSession) throws -> any NetworkTask

    let change: @Sendable (NetworkRequest) async throws -> NetworkRequest
    let make: Make

    init(
        _ bench: OperationBench, method: String = "POST", body: RequestBody = .none,
        change: @escaping @Sendable (NetworkRequest) async throws -> NetworkRequest = { $0 },
        make: @escaping Make = { $1.makeTask(with: $0) }
    ) {
        (self.make, self.change) = (make, change)
        super.init(url: bench.server.url("/"), method: method, body: body, urlSession: bench.session)
    }

    override func adapt(_ request: NetworkRequest) async throws -> NetworkRequest { try await change(request) }

    override func createTask(
        with request: NetworkRequest, using session: any NetworkSession
    ) throws -> any NetworkTask { try make(request, session) }
}

extension NetworkRequest {
    /// A copy of the request with a header that replaces all headers of that name.
    func with(_ name: String, _ value: String?) throws -> NetworkRequest {
        var fields = headers
        fields[name] = value
        return try NetworkRequest(method, url: url, headers: fields, body: body, options: options)
    }
}
