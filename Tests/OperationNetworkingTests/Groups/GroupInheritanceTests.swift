// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// What the network operations beneath a group take over from it.
@Suite("Inheritance in groups", .timeLimit(.minutes(2)))
struct GroupInheritanceTests {
    private let retries: RetryBench
    private var bench: OperationBench { retries.bench }
    private var server: LoopbackServer { bench.server }

    init() throws {
        retries = try RetryBench()
        // Each place fails once, and then answers.
        let seen = Shared<Set<String>>([])
        server.route("/*") { request in
            let isFirst = !seen.value.contains(request.path)
            seen.value.insert(request.path)
            return isFirst ? .status(503) : .text("Hello")
        }
    }

    /// An operation that says nothing, and whose pauses end as soon as they begin.
    private func child(_ path: String) -> NetworkDataOperation<String> {
        let child = bench.text(path)
        child.clock = retries.clock
        child.endPauses(retries.clock)
        return child
    }

    private func attempts(_ path: String) -> Int { server.requests.count { $0.path == path } }

    /// Each way in which an operation becomes a child.
    enum Way: String, CaseIterable, Sendable {
        case asyncBody, synchronousBody, declared, added, map, pipeline, plan, recovered
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
        case .pipeline: return OperationPipeline(["/a"]).stage(width: 1) { make($0) }.operation()
        case .plan: return OperationPlan { (path: String) in make(path) }.mapResult { [$0] }.operation(for: "/a")
        case .recovered:
            let failing = TaskOperation { () async throws -> String in throw Refusal() }
            let group = GroupOperation.all([failing])
            group.recover { (_: FailedChild<String>) in .operation(make("/a")) }
            return group
        }
    }

    @Test("A policy comes over two levels, whatever way the child came in", arguments: Way.allCases)
    func twoLevels(way: Way) async throws {
        let queue = QueueManager("inheritance", width: 1)
        let inner = group(way)
        let outer = GroupOperation { group in try await group.run(inner) }
        // Set after the inner one was made: what counts is what is said when the child begins.
        outer.retry = retries.retry()
        try queue.add(outer)
        #expect(try await outer.value == ["Hello"])
        #expect(attempts("/a") == 2 && outer.retry == nil)
    }

    @Test("Without a word of a group nothing is repeated")
    func nothingSaid() async throws {
        let child = child("/a")
        let outer = GroupOperation { group in try await group.run(GroupOperation.all([child])) }
        await outer.ended(by: { outer.start() })
        #expect(child.outcome?.error?.status == 503 && child.retry == nil && attempts("/a") == 1)
    }

    @Test("The nearest word counts: the child's own, then that of the inner group")
    func nearest() async throws {
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
        await outer.ended(by: { outer.start() })
        #expect(own.retry?.policy.maximumAttempts == 7 && inherited.retry?.policy.maximumAttempts == 5)
        #expect(none.retry == nil && base.retry?.policy.maximumAttempts == 4)
        #expect(attempts("/none") == 1 && attempts("/own") == 2 && attempts("/inherited") == 2)
    }

    /// One whose base says what is to be repeated.
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

    @Test("A group that says nil keeps the outer policy from all beneath it")
    func groupSaysNone() async throws {
        let child = child("/a")
        let inner = GroupOperation.outcomes(of: [child])
        inner.retry = nil
        let outer = GroupOperation { group in try await group.run(inner) }
        outer.retry = retries.retry()
        await outer.ended(by: { outer.start() })
        #expect(attempts("/a") == 1 && child.outcome?.error?.status == 503)
    }

    @Test("A body says it for what it runs from then on")
    func saidInBody() async throws {
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

    @Test("It comes through what wraps an operation, or a group of them")
    func wrapped() async throws {
        let (one, two) = (child("/one"), child("/two"))
        let wrappedOne = one.mapResult { $0 + "!" }.mapError { _ in Refusal() }
        let wrappedGroup = GroupOperation.all([two]).mapResult { $0[0] }
        let group = GroupOperation { group in try await group.run(wrappedOne) + group.run(wrappedGroup) }
        group.retry = retries.retry()
        #expect(try await group.run() == "Hello!Hello")
        #expect(attempts("/one") == 2 && attempts("/two") == 2)
    }

    @Test("What a body only awaits is somebody else's, and inherits nothing")
    func strangers() async throws {
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

    @Test("A group lets go of what it said, also of a rule that holds the group")
    func letsGo() async throws {
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
                // Too late.
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
    /// What becomes of a child, whatever it is.
    func outcome<Value: Sendable>(
        of child: TypedOperation<Value, NetworkError>
    ) async -> OperationOutcome<Value, NetworkError>? {
        _ = try? await run(child)
        return child.outcome
    }
}

extension ManagedOperation {
    /// Waits for the end of what that begins.
    func ended(by begin: () -> Void) async {
        begin()
        await ended()
    }
}
