// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit

/// Requests to a server that fails at times, and the reasons why they are sent again or fail.
struct RetryTour {
    private let server: LoopbackServer
    private let callbacks = DispatchQueue(label: "resilience")

    init() throws {
        server = try LoopbackServer()
        server.route("GET", "/album") { request in
            switch request.number {
            case 0: .status(503).with("Retry-After", "1")
            case 1: .reset
            default: .json(#"{"title":"Kind of Blue"}"#)
            }
        }
        server.route("POST", "/order") { _ in .status(503) }
        server.route("POST", "/keyed") { $0.number % 2 == 0 ? .status(503) : .text("done") }
        server.route("GET", "/down") { _ in .status(500) }
        server.route("GET", "/closed") { _ in .status(429).with("Retry-After", "3600") }
    }

    /// The common configuration of all requests, with short pauses and a separate retry budget.
    private func service() -> NetworkBase {
        var base = NetworkBase(server.url("/"))
        base.callbackQueue = callbacks
        var retry = Retry(budget: RetryBudget(reserve: 6))
        retry.backoff = .exponential(from: .milliseconds(50))
        retry.throttledBackoff = .exponential(from: .milliseconds(100))
        base.retry = retry
        base.retryHandler = { print("  \($0)") }
        return base
    }

    func run() async throws {
        print("== Retry")
        try await getsThrough()
        await isNotRepeated()
        try await hasKey()
        await asksTooMuch()
        await budget()
    }

    private func getsThrough() async throws {
        print("A server that is overloaded and then closes the connection")
        let album: [String: String] = try await service().get("album").run()
        callbacks.sync {}
        print("  \(album["title"] ?? "nothing")")
        expect(album == ["title": "Kind of Blue"])
    }

    private func isNotRepeated() async {
        print("A request that the server might execute twice is not sent again")
        let order: EndpointOperation<NoContent> = service().send(["item": "one"], to: "order")
        let error = await order.begunOutcome.error
        expect(error?.retryEnd == .notIdempotent && error?.attempts.count == 1)
    }

    private func hasKey() async throws {
        print("With an idempotency key, the request is sent again")
        let order: EndpointOperation<NoContent> = service().send(["item": "one"], to: "keyed")
        order.idempotencyKey = .random()
        _ = try await order.run()
        let keys = server.requests.filter { $0.path == "/keyed" }.map { $0["Idempotency-Key"] }
        expect(keys.count == 2 && keys[0] != nil && keys[0] == keys[1])
    }

    private func asksTooMuch() async {
        print("If a server asks clients to wait for an hour, the request is not sent again")
        let operation: EndpointOperation<NoContent> = service().get("closed")
        let error = await operation.begunOutcome.error
        print("  \(error?.report() ?? "no error")")
        expect(error?.retryEnd == .askedToWaitTooLong && error?.retryAfter == .seconds(3600))
    }

    private func budget() async {
        print("Forty operations fail together: the budget allows only some of them another attempt")
        var base = service()
        let reasons = Reasons()
        base.retryHandler = { reasons.add($0.reason) }
        let before = server.counts.heads
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<40 {
                let operation: EndpointOperation<NoContent> = base.get("down")
                group.addTask { _ = await operation.begunOutcome }
            }
        }
        callbacks.sync {}
        let sent = server.counts.heads - before
        print("  \(sent) requests; \(reasons)")
        // The budget allows a fifth of the requests, the reserve, and the amount that it regains during the requests.
        expect(sent >= 40 && sent <= 40 + 8 + 6 + 5)
    }
}

/// The number of retries for each reason.
private final class Reasons: CustomStringConvertible, @unchecked Sendable {
    // Sendable: the property is used only on the callback queue, and afterward by the thread that waited for this
    // queue.
    private var counts: [String: Int] = [:]

    func add(_ reason: RetryReason) { counts[reason.description, default: 0] += 1 }

    var description: String {
        counts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
    }
}
