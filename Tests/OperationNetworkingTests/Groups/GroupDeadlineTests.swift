// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// Tests the deadline of a group and its network operations.
@Suite("Deadlines of groups", .timeLimit(.minutes(2)))
struct GroupDeadlineTests {
    private let retries: RetryBench
    private var server: LoopbackServer { retries.bench.server }
    /// The clock of the group, which differs from that of the children.
    private let clock = ManualClock()

    init() throws {
        retries = try RetryBench()
        server.route("/") { _ in .status(503) }
    }

    /// An operation without its own settings.
    private func child() -> NetworkDataOperation<String> {
        let child = retries.bench.text()
        child.clock = retries.clock
        return child
    }

    /// A group within a group, whose children are repeated with pauses of four seconds.
    private func nested(_ child: NetworkDataOperation<String>) -> GroupOperation<[String], GroupFailure> {
        let inner = GroupOperation.all([child])
        let outer = GroupOperation { group in try await group.run(inner) }
        outer.retry = retries.retry { retry in
            retry.throttledBackoff = .constant(.seconds(4))
            retry.policy.maximumAttempts = 100
        }
        outer.clock = clock
        return outer
    }

    @Test func `an operation that waits for its next attempt is canceled at the deadline of the group`() async throws {
        let child = child()
        let group = nested(child)
        group.deadline = clock.now.advanced(by: .seconds(10))
        group.start()
        try await retries.pause(of: child)
        clock.advance(by: .seconds(10))
        #expect(child.isCancelled)
        await group.ended()
        #expect(group.cancellationCause?.code == .deadlinePassed)
        #expect(child.cancellationCause?.code == .groupCancelled && server.counts.heads == 1)
        #expect(clock.pendingCount == 0 && retries.clock.pendingCount == 0)
    }

    @Test(
        "No attempt begins that would exceed the deadline or the timeout of an outer group", arguments: [true, false])
    func noLateAttempt(isTimeout: Bool) async throws {
        let child = child()
        let group = nested(child)
        if isTimeout { group.timeout = .seconds(4) } else { group.deadline = clock.now.advanced(by: .seconds(4)) }
        await group.startAndEnd()
        #expect(child.outcome?.error?.retryEnd == .deadlineTooNear && server.counts.heads == 1)
    }

    @Test func `a shielded operation is not limited by the deadline of the group`() async throws {
        let child = child()
        server.route("/") { $0.number == 0 ? .status(503) : .text("Hello") }
        child.endPauses(retries.clock)
        let group = GroupOperation { group in
            try await group.shield { shield in try await shield.run(child) }
        }
        group.retry = retries.retry { $0.throttledBackoff = .constant(.seconds(4)) }
        group.clock = clock
        group.deadline = clock.now.advanced(by: .seconds(4))
        #expect(try await group.run() == "Hello")
        #expect(server.counts.heads == 2)
    }

    @Test func `the deadline of an operation that wraps a child applies to the child`() async throws {
        let child = child()
        let wrapper = child.mapResult { $0.count }
        wrapper.clock = clock
        wrapper.deadline = clock.now.advanced(by: .seconds(4))
        let outer = GroupOperation.outcomes(of: [wrapper])
        outer.retry = retries.retry { $0.throttledBackoff = .constant(.seconds(4)) }
        await outer.startAndEnd()
        #expect(child.outcome?.error?.retryEnd == .deadlineTooNear && server.counts.heads == 1)
    }
}
