// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// Tests that owners and groups cancel an operation in whichever state it waits.
@Suite("Owners and groups of waiting operations", .timeLimit(.minutes(1)))
struct ReachingWaitsTests {
    private enum Wait: CaseIterable {
        case backoff, network, originPause, list
    }

    private enum By: CaseIterable {
        case owner, group
    }

    @Test(arguments: By.allCases)
    private func `a waiting operation is canceled by its owner and with its group`(_ by: By) async throws {
        for wait in Wait.allCases {
            let bench = try OfflineBench()
            if wait != .network { bench.network.write(.satisfied) }
            let list = PostponedOperations { _ in wait == .list }
            let pauses = OriginPauses(clock: bench.clock)
            bench.bench.server.route("GET", "/") { _ in .status(wait == .backoff ? 500 : 401) }
            if wait == .originPause {
                bench.bench.server.route("GET", "/busy") { _ in .status(429, ["Retry-After": "10"]) }
                let busy = bench.operation(at: bench.bench.server.url("/busy"))
                busy.retry = retry(bench, pauses) { $0.policy.maximumAttempts = 1 }
                _ = await failure(of: busy)
            }
            let operation = bench.operation()
            operation.retry = retry(bench, pauses)
            operation.postponed = list
            let owner = OperationOwner.named("a screen that waits")
            let group = GroupOperation<String, GroupFailure> { group in try await group.run(operation) }
            if by == .owner { operation.owner = owner }
            group.start()
            await until { operation.networkAttempts.isResting && operation.waitReason != nil }
            switch by {
            case .owner: OperationOwner.cancelOperations(ownedBy: owner)
            case .group: group.cancel()
            }
            #expect(operation.isCancelled, "\(wait)")
            await group.ended()
            #expect(group.isCancelled && operation.isFinished)
            bench.clock.advance(by: .seconds(3600))
            #expect(bench.bench.server.counts.heads == [.backoff: 1, .network: 0, .originPause: 1, .list: 1][wait])
            await until { bench.offlineWaiting.waitingCount == 0 }
            #expect(bench.offlineWaiting.waitingCount == 0 && pauses.waitingCount == 0 && list.operations.isEmpty)
        }
    }

    private func retry(
        _ bench: OfflineBench, _ pauses: OriginPauses, _ change: (inout Retry) -> Void = { _ in }
    ) -> Retry {
        var retry = Retry(budget: nil)
        retry.chance = { 1 }
        retry.originPauses = pauses
        change(&retry)
        return retry
    }

    @Test func `a child that waits for the network frees its slot in the queue only`() async throws {
        let bench = try OfflineBench(), queue = QueueManager("api", width: 1)
        let paused = bench.operation()
        let narrow = GroupOperation.all([paused, bench.operation()], width: 1, on: queue)
        narrow.start()
        await bench.waits(paused)
        #expect(try await queue.add(ClosureOperation { 42 }).value == 42, "the queue is free")
        #expect(bench.offlineWaiting.waitingCount == 1, "the group is not")
        bench.comeBack()
        #expect(try await narrow.value.count == 2)
    }
}

extension QueueManager {
    /// Adds the operation and returns it.
    fileprivate func add<Result, Failure>(
        _ operation: ClosureOperation<Result, Failure>
    ) throws -> ClosureOperation<Result, Failure> {
        try add(operation as ManagedOperation)
        return operation
    }
}
