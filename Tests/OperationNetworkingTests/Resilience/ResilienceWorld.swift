// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Real operations in a real queue, with retry, authentication, offline waiting and a throttle, on one manual clock.
///
/// They use a model of a server, and the next event is drawn from a seed. The test usually waits for work on other
/// threads, but not always, so each schedule is one of many orders.
struct ResilienceWorld {
    /// The phase of an operation, as seen from outside.
    enum Phase: String, CaseIterable {
        case begun, queued, throttled, adapting, inFlight, backingOff, waitingForToken, waitingForNetwork
        case waitingForPlace, suspended, moving
    }

    let clock = ManualClock()
    let network = ManualConnectivity(.satisfied)
    let server = ModelServer()
    let workers = ManualWorkers()
    let queue: QueueManager
    let offlineWaiting: OfflineWaiting
    let throttle: OperationThrottle
    let callbacks = DispatchQueue(label: "ResilienceWorld.callbacks")
    let refreshes = PendingGates()
    let authenticator: Authenticator<String>
    let adaptations: [PendingGates]
    let operations: [NetworkDataOperation<String>]
    let told: [EventRecorder<String>]
    var added: Set<Int> = []
    var generator: SeededGenerator
    var goodToken = "1"
    var lastToken = 1
    var expiries: Int
    var story: [String] = []
    var faults: [String] = []
    /// The operations that were canceled, whether or not they had ended.
    var askedToEnd: Set<Int> = []
    /// The phases in which operations were canceled.
    var cancelled: [Phase] = []

    init(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let (clock, network, server, callbacks) = (clock, network, server, callbacks)
        queue = workers.makeQueue("world", width: 2)
        offlineWaiting = OfflineWaiting(
            monitor: network, perSecond: 10, settling: .milliseconds(100), clock: clock,
            chance: { 0.5 })
        throttle = OperationThrottle(clock: clock)
        var options = AuthenticationOptions()
        options.clock = clock
        options.maximumRefreshes = 100
        options.pace = PostponementPace(Int.random(in: 1...3, using: &generator), every: .milliseconds(50))
        let refreshes = refreshes
        authenticator = Authenticator("1", options: options) { token, request in
            try request.with("Authorization", token)
        } refresh: { _ in
            try await refreshes.pass()
        }
        var (operations, adaptations) = ([NetworkDataOperation<String>](), [PendingGates]())
        var told: [EventRecorder<String>] = []
        for number in 0..<Int.random(in: 2...6, using: &generator) {
            let gates = PendingGates(), record = EventRecorder<String>()
            let operation = Self.operation(number, server, gates, &generator)
            operation.callbackQueue = callbacks
            operation.clock = clock
            operation.successHandler = { _ in record.record("success") }
            operation.failureHandler = { _ in record.record("failure") }
            operation.cancellationHandler = { _ in record.record("cancelled") }
            var retry = Retry(budget: nil)
            retry.chance = { 0.5 }
            retry.attemptTimeout = generator.chance(1, in: 4) ? .seconds(20) : nil
            if generator.chance(7, in: 8) { operation.retry = retry }
            operation.authenticate(by: authenticator)
            let policy = with(OfflinePolicy(waiting: offlineWaiting)) { $0.longestWait = .seconds(30) }
            if generator.chance(7, in: 8) { operation.offline = policy }
            if generator.chance(1, in: 3) {
                operation.throttle = ThrottleRule(key: "key", interval: .seconds(5), early: .wait, in: throttle)
            }
            operations.append(operation)
            adaptations.append(gates)
            told.append(record)
        }
        (self.operations, self.adaptations, self.told) = (operations, adaptations, told)
        expiries = Int.random(in: 0...3, using: &generator)
        self.generator = generator
    }

    /// Returns either an operation that adapts its request, or an instance of the library's class.
    private static func operation(
        _ number: Int, _ server: ModelServer, _ gates: PendingGates, _ generator: inout SeededGenerator
    ) -> NetworkDataOperation<String> {
        var request = URLRequest(url: URL(filePath: "/"))
        request.url = URL(string: "http://example.com/\(number)")
        request.setValue("\(number)", forHTTPHeaderField: "X-Operation")
        return generator.chance(1, in: 2)
            ? AdaptingOperation(request, server, gates)
            : NetworkDataOperation<String>(request: request, urlSession: server)
    }

    func phase(_ index: Int) -> Phase {
        let operation = operations[index]
        switch operation.state {
        case .notStarted:
            if !added.contains(index) { return .begun }
            return throttle.waiters(of: "key").contains { $0 === operation } ? .throttled : .queued
        case .suspended: return .suspended
        default: break
        }
        switch operation.waitReason?.kind {
        case .pause?: return .backingOff
        case .credential?: return .waitingForToken
        case .network?: return .waitingForNetwork
        case .place?: return .waitingForPlace
        default: break
        }
        if !adaptations[index].isEmpty { return .adapting }
        return server.isInFlight(index) ? .inFlight : .moving
    }

    /// Waits for a short time until no operation is between two phases.
    func settle() async {
        for _ in 0..<400 {
            if operations.indices.allSatisfy({ operations[$0].outcome != nil || phase($0) != .moving }) { return }
            await Task.yield()
        }
    }
}

/// An operation that finishes its adaptation when the test says so.
private final class AdaptingOperation: NetworkDataOperation<String>, @unchecked Sendable {
    // Sendable: its properties do not change.
    private let gates: PendingGates

    init(_ request: URLRequest, _ server: ModelServer, _ gates: PendingGates) {
        self.gates = gates
        super.init(request: request, urlSession: server) { data, _ in String(decoding: data, as: UTF8.self) }
    }

    override func adapt(_ request: NetworkRequest) async throws -> NetworkRequest {
        _ = try await gates.pass()
        return request
    }
}

/// Waiters that continue one by one when the test lets them.
final class PendingGates: Sendable {
    private typealias Waiter = CheckedContinuation<String, any Error>
    private struct State {
        var waiters: [Int: Waiter] = [:]
        var last = 0
    }

    private let state = Locked(State())

    var isEmpty: Bool { state.withLock { $0.waiters.isEmpty } }
    var count: Int { state.withLock { $0.waiters.count } }

    func pass() async throws -> String {
        let number = state.withLock { state in
            state.last += 1
            return state.last
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                state.withLock { $0.waiters[number] = continuation }
                if Task.isCancelled { end(number, .failure(CancellationError())) }
            }
        } onCancel: {
            end(number, .failure(CancellationError()))
        }
    }

    /// Lets the first waiter continue.
    func open(_ result: Result<String, any Error> = .success("")) {
        if let number = state.withLock({ $0.waiters.keys.min() }) { end(number, result) }
    }

    private func end(_ number: Int, _ result: Result<String, any Error>) {
        state.withLock { $0.waiters.removeValue(forKey: number) }?.resume(with: result)
    }
}
