// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// Tests the settings that the network operations of a group inherit.
@Suite("Inheritance in groups", .timeLimit(.minutes(2)))
struct GroupInheritanceTests {
    private let retries: RetryBench
    private var bench: OperationBench { retries.bench }
    private var server: LoopbackServer { bench.server }

    init() throws {
        retries = try RetryBench()
        // Each path fails once, and then succeeds.
        let seen = Shared<Set<String>>([])
        server.route("/*") { request in
            let isFirst = !seen.value.contains(request.path)
            seen.value.insert(request.path)
            return isFirst ? .status(503) : .text("Hello")
        }
    }

    /// An operation without its own settings, whose pauses end as soon as they begin.
    private func child(_ path: String) -> NetworkDataOperation<String> {
        let child = bench.text(path)
        child.clock = retries.clock
        child.endPauses(retries.clock)
        return child
    }

    private func attempts(_ path: String) -> Int { server.requests.count { $0.path == path } }

    /// The ways in which an operation becomes a child.
    enum Way: String, CaseIterable, Sendable {
        case asyncBody, synchronousBody, declared, added, map, recovered
    }

    private func group(_ way: Way) -> GroupOperation<[String], GroupFailure> {
        let make: @Sendable (String) -> NetworkDataOperation<String> = { [self] in child($0) }
        switch way {
        case .asyncBody: return GroupOperation { group in [try await group.run(make("/a"))] }
        case .synchronousBody: return GroupOperation(synchronous: { group in [try group.perform(make("/a"))] })
        case .declared: return GroupOperation.all([make("/a")])
        case .added:
            return GroupOperation { group in
                let added = make("/a")
                try group.add(added)
                return [try await group.run(added)]
            }
        case .map: return GroupOperation.map(["/a"], width: 1, make)
        case .recovered:
            let failing = TaskOperation { () async throws -> String in throw Refusal() }
            let group = GroupOperation.all([failing])
            group.recover { (_: FailedChild<String>) in .operation(make("/a")) }
            return group
        }
    }

    @Test(arguments: Way.allCases)
    func `a retry policy is inherited over two levels, in whichever way the child was added`(way: Way) async throws {
        let queue = QueueManager("inheritance", width: 1)
        let inner = group(way)
        let outer = GroupOperation { group in try await group.run(inner) }
        // The policy is set after the inner group was created, because only the value at the start of the child counts.
        outer.retry = retries.retry()
        try queue.add(outer)
        #expect(try await outer.value == ["Hello"])
        #expect(attempts("/a") == 2 && outer.retry == nil)
    }

    @Test func `without a retry policy in a group, no request is repeated`() async throws {
        let child = child("/a")
        let outer = GroupOperation { group in try await group.run(GroupOperation.all([child])) }
        await outer.startAndEnd()
        #expect(child.outcome?.error?.status == 503 && child.retry == nil && attempts("/a") == 1)
    }

    @Test func `the nearest retry policy applies: that of the child, and then that of the inner group`() async throws {
        let (own, none, inherited, base) = (child("/own"), child("/none"), child("/inherited"), baseChild("/base"))
        own.retry = retries.retry { $0.policy.maximumAttempts = 7 }
        none.retry = nil
        let inner = GroupOperation.outcomes(of: [own, none, inherited])
        inner.retry = retries.retry { $0.policy.maximumAttempts = 5 }
        let outer = GroupOperation { group in
            _ = await group.outcome(of: base)
            return try await group.run(inner)
        }
        outer.retry = retries.retry { $0.policy.maximumAttempts = 3 }
        let seen = Shared<[Int?]>([])
        for child in [own, none, inherited, base] {
            child.observe(on: bench.callbacks) { [weak child] _ in
                seen.value.append(child?.retry?.policy.maximumAttempts)
            }
        }
        await outer.startAndEnd()
        #expect(own.retry?.policy.maximumAttempts == 7 && inherited.retry?.policy.maximumAttempts == 5)
        #expect(none.retry == nil && base.retry?.policy.maximumAttempts == 4)
        #expect(attempts("/none") == 1 && attempts("/own") == 2 && attempts("/inherited") == 2)
    }

    /// An operation whose base has a retry policy.
    private func baseChild(_ path: String) -> EndpointOperation<String> {
        var base = NetworkBase(server.url())
        base.session = bench.session
        base.callbackQueue = bench.callbacks
        base.retry = retries.retry { $0.policy.maximumAttempts = 4 }
        let child = bench.watched(base.get(path, as: String.self))
        child.clock = retries.clock
        child.endPauses(retries.clock)
        return child
    }

    @Test func `a group whose retry policy is nil blocks the outer policy`() async throws {
        let child = child("/a")
        let inner = GroupOperation.outcomes(of: [child])
        inner.retry = nil
        let outer = GroupOperation { group in try await group.run(inner) }
        outer.retry = retries.retry()
        await outer.startAndEnd()
        #expect(attempts("/a") == 1 && child.outcome?.error?.status == 503)
    }

    @Test
    func `a retry policy that is set within a body applies to the operations that it runs afterwards`() async throws {
        let (before, after) = (child("/before"), child("/after"))
        let retry = retries.retry()
        let group = GroupOperation { group in
            _ = await group.outcome(of: before)
            group.retry = retry
            return try await group.run(after)
        }
        #expect(try await group.run() == "Hello")
        #expect(attempts("/before") == 1 && attempts("/after") == 2)
    }

    @Test func `a retry policy is inherited through operations that wrap an operation or a group`() async throws {
        let (one, two) = (child("/one"), child("/two"))
        let wrappedOne = one.mapResult { $0 + "!" }.mapError { _ in Refusal() }
        let wrappedGroup = GroupOperation.all([two]).mapResult { $0[0] }
        let group = GroupOperation { group in try await group.run(wrappedOne) + group.run(wrappedGroup) }
        group.retry = retries.retry()
        #expect(try await group.run() == "Hello!Hello")
        #expect(attempts("/one") == 2 && attempts("/two") == 2)
    }

    @Test func `an operation that a body only awaits inherits nothing`() async throws {
        let stranger = child("/a")
        let gate = Gate()
        server.route("/a") { _ in .status(503).after(gate) }
        stranger.start()
        let group = GroupOperation { group in await group.outcome(of: stranger)?.error?.status }
        group.retry = retries.retry()
        group.start()
        _ = await server.heads(atLeast: 1)
        gate.open()
        await group.ended()
        #expect(group.outcome?.result == 503 && stranger.retry == nil && server.counts.heads == 1)
    }

    @Test func `a group releases its retry policy, even if a rule of the policy holds the group`() async throws {
        for isRun in [true, false] {
            let group = bench.census.track(GroupOperation { _ in 1 })
            let child = child("/\(isRun)")
            var retry = retries.retry()
            retry.policy.decide = { [bench] _ in
                withExtendedLifetime((group, child)) { _ = bench }
                return .asPolicySays
            }
            group.retry = retry
            if isRun {
                _ = try await group.run()
                await group.ended()
                // The change is too late to have an effect.
                group.retry = retry
            } else {
                group.cancel()
                group.start()
            }
        }
        try await bench.checkNothingIsLeft()
    }
}

extension GroupScope {
    /// Runs a child and returns its outcome.
    func outcome<Value: Sendable>(
        of child: TypedOperation<Value, NetworkError>
    ) async -> OperationOutcome<Value, NetworkError>? {
        _ = try? await run(child)
        return child.outcome
    }
}
