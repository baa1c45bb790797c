// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// User code around a realm may block, and may use the realm itself.
@Suite("Authentication with blocking hooks and handlers", .timeLimit(.minutes(1)))
struct AuthenticationHookTests {
    @Test("A hook of a released operation may wait for another operation of the realm and another refresh")
    func hookNeedsTheRealm() async throws {
        let bench = try TokenBench()
        let authenticator = bench.authenticator()
        let operation = Waiting(url: bench.server.url("/"), urlSession: bench.bench.session)
        operation.authenticate(by: authenticator)
        operation.atSecondRound.withLock { body in
            body = {
                // The refreshed token is no longer valid.
                bench.good.value = "newer"
                _ = try? bench.operation(authenticator).startAndWait()
            }
        }
        #expect(try await operation.run() == "Hello")
        #expect(bench.asked.events == ["old", "new"])
    }

    @Test func `an event handler that blocks does not delay the operations`() async throws {
        let bench = try TokenBench(), done = DispatchSemaphore(value: 0)
        let authenticator = bench.authenticator(change: { options in
            options.eventHandler = { [events = bench.events] event in
                events.record(event)
                if event.kind == .credentialCame { done.wait() }
            }
        })
        #expect(try await bench.operation(authenticator).run() == "Hello")
        for _ in 0..<8 { done.signal() }
        _ = await bench.events.events(atLeast: 3)
    }

    @Test func `hooks and retry policies of a refresh's request may send requests, which do not wait`() async throws {
        let bench = try TokenBench(), itself = Shared<Authenticator<String>?>(nil), helped = EventRecorder<String>()
        bench.server.route("GET", "/help") { _ in .text("helped") }
        bench.server.route("GET", "/token") { _ in helped.events.isEmpty ? .status(503) : .text("new") }
        let help: @Sendable () async throws -> Void = {
            guard let authenticator = itself.value else { return }
            helped.record(try await bench.operation(authenticator, "/help").run())
        }
        let authenticator = bench.authenticator(refresh: {
            let operation = Adapting(url: bench.server.url("/token"), urlSession: bench.bench.session)
            operation.atSecondRound.withLock { $0 = help }
            var retry = Retry(budget: nil)
            retry.policy.decide = { _ in
                try? await help()
                return .again(after: .zero)
            }
            operation.retry = retry
            return try await operation.run()
        })
        itself.value = authenticator
        #expect(try await bench.operation(authenticator).run() == "Hello")
        #expect(helped.events == ["helped", "helped"])
        itself.value = nil
    }

    @Test func `after a sign-out, a refresh that has not begun does not call its closure`() async throws {
        let bench = try TokenBench(), held = Gate(), manual = ManualClock()
        let clock = ClosureClock(
            over: manual,
            schedule: {
                held.wait()
                return manual.schedule(at: $0, $1)
            })
        let authenticator = bench.authenticator(change: { $0.clock = clock }, refresh: { "new" })
        bench.good.value = "newer"
        // The first refresh holds the realm's queue, although its credential arrives.
        let first = bench.operation(authenticator), second = bench.operation(authenticator)
        first.start()
        await until { authenticator.credential == "new" }
        second.start()
        await until { authenticator.credential == nil && second.waitReason?.kind == .credential }
        authenticator.signOut()
        held.open()
        await first.ended()
        await second.ended()
        #expect(second.outcome?.error?.code == .signedOut)
        await until { bench.events.events.contains { $0.kind == .failed } }
        #expect(bench.events.events.filter { $0.kind == .refreshBegan }.count == 1)
        #expect(bench.asked.events == ["old"])
    }

    @Test func `events are reported in the order in which they happen`() async throws {
        let bench = try TokenBench(), isFailing = Shared(false)
        let authenticator = bench.authenticatorForOneThatWaits {
            if isFailing.value { throw Refusal() }
            return "new"
        }
        #expect(try await bench.operation(authenticator).run() == "Hello")
        (isFailing.value, bench.good.value) = (true, "newer")
        #expect(await failure(of: bench.operation(authenticator))?.code == .refreshFailed)
        let events = await bench.events.events(atLeast: 7)
        #expect(
            events.map(\.kind) == [
                .credentialCame, .refreshBegan, .credentialCame, .released, .refreshBegan, .refreshFailed, .failed,
            ])
        #expect(events.map(\.version) == [1, 1, 2, 2, 2, 2, 2])
    }

    @Test func `two realms whose refreshes need each other do not deadlock`() async throws {
        let bench = try TokenBench()
        bench.server.route("GET", "/a-token") { $0["Authorization"] == "Bearer b" ? .text("new") : .status(401) }
        bench.server.route("GET", "/b-token") { _ in .text("b") }
        let realms = Shared<[AuthenticationRealm]>([])
        let fetch: @Sendable (String, Int) async throws -> String = { target, realm in
            let operation = bench.bench.text(target)
            operation.realms = [realms.value[realm]]
            return try await operation.run()
        }
        let first = bench.authenticator(refresh: { try await fetch("/a-token", 1) })
        let second = bench.authenticator(nil, refresh: { try await fetch("/b-token", 0) })
        realms.value = [first.realm, second.realm]
        #expect(try await bench.operation(first).run() == "Hello")
        #expect(bench.server.requests.map(\.path) == ["/", "/b-token", "/a-token", "/"])
        #expect(bench.server.requests[1]["Authorization"] == nil)
        realms.value = []
    }

    @Test func `a task left by the refresh of a released realm waits for a new realm`() async throws {
        let bench = try TokenBench(), goOn = Gate()
        let leftBehind = Shared<Task<Bool, any Error>?>(nil), address = Shared<ObjectIdentifier?>(nil)
        do {
            let authenticator = bench.authenticator(refresh: {
                leftBehind.value = Task {
                    await goOn.passage()
                    return try await Self.waits(bench, for: bench.authenticatorAt(address.value))
                }
                return "new"
            })
            address.value = ObjectIdentifier(authenticator.realm)
            #expect(try await bench.operation(authenticator).run() == "Hello")
        }
        try await bench.bench.checkNothingIsLeft()
        goOn.open()
        #expect(try await leftBehind.value?.value == true)
    }

    /// Whether two operations that are created here wait for the refresh that the first operation begins.
    private static func waits(
        _ bench: TokenBench, for found: (authenticator: Authenticator<String>, refresh: Gate)
    ) async throws -> Bool {
        let operations = bench.operations(2, found.authenticator)
        for (index, operation) in operations.enumerated() {
            operation.start()
            await until { found.authenticator.postponedCount == index + 1 || operation.outcome != nil }
        }
        found.refresh.open()
        for operation in operations { guard try await operation.value == "Hello" else { return false } }
        return true
    }

    @Test func `a task that outlives its refresh gets credentials like any other task`() async throws {
        let bench = try TokenBench(), continues = Gate(), left = Shared<Task<String, any Error>?>(nil)
        let later = Shared<Authenticator<String>?>(nil)
        let authenticator = bench.authenticator(refresh: {
            left.value = Task {
                await continues.passage()
                guard let authenticator = later.value else { throw Refusal() }
                return try await bench.operation(authenticator).run()
            }
            return "new"
        })
        later.value = authenticator
        #expect(try await bench.operation(authenticator).run() == "Hello")
        continues.open()
        #expect(try await left.value?.value == "Hello")
        #expect(bench.server.requests.map { $0["Authorization"] } == ["Bearer old", "Bearer new", "Bearer new"])
        later.value = nil
    }
}

/// Runs a closure when the request is adapted for the second time.
private final class Adapting: NetworkDataOperation<String>, @unchecked Sendable {
    // Sendable: the mutable state is behind locks.
    let atSecondRound = Locked<(@Sendable () async throws -> Void)?>(nil)
    private let rounds = Locked(0)

    override func adapt(_ request: NetworkRequest) async throws -> NetworkRequest {
        if rounds.next() == 2 { try await atSecondRound.withLock { $0 }?() }
        return request
    }
}

/// Runs a closure when the operation is prepared for the second time.
private final class Waiting: NetworkDataOperation<String>, @unchecked Sendable {
    // Sendable: the mutable state is behind locks.
    let atSecondRound = Locked<(@Sendable () -> Void)?>(nil)
    private let rounds = Locked(0)

    override func prepareRequest(_ request: URLRequest) -> URLRequest {
        let round = rounds.next()
        if round == 2 { atSecondRound.withLock { $0 }?() }
        return request
    }
}

extension TokenBench {
    /// Returns an authenticator whose realm is at the address of an earlier realm, if possible.
    fileprivate func authenticatorAt(_ address: ObjectIdentifier?) -> (Authenticator<String>, refresh: Gate) {
        let refresh = Gate()
        var others: [Authenticator<String>] = []
        while true {
            let made = authenticator(
                nil,
                refresh: { [good] in
                    await refresh.passage()
                    return good.value
                })
            if others.count == 1_000 || ObjectIdentifier(made.realm) == address { return (made, refresh) }
            others.append(made)
        }
    }
}
