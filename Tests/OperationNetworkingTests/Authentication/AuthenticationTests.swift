// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// Tests rejected and refreshed credentials against a real server.
@Suite("Authentication", .timeLimit(.minutes(1)))
struct AuthenticationTests {
    private typealias Outcome = OperationOutcome<String, NetworkError>

    private func results(_ operations: [NetworkDataOperation<String>]) async -> [Outcome?] {
        for operation in operations { await operation.ended() }
        return operations.map(\.outcome)
    }

    @Test("Forty requests with an expired token: all succeed after one refresh, and none is sent meanwhile")
    func forty() async throws {
        let bench = try TokenBench(), (rejects, refreshes) = (Gate(), Gate())
        bench.serve { _ in .status(401).after(rejects) }
        let authenticator = bench.authenticator(refresh: refreshes.opening("new"))
        do {
            let operations = bench.operations(40, authenticator)
            for operation in operations.prefix(5) { operation.start() }
            _ = await bench.server.heads(atLeast: 5)
            rejects.open()
            await until { authenticator.postponedCount == 5 }
            for operation in operations.dropFirst(5) { operation.start() }
            await until { authenticator.postponedCount == 40 }
            #expect(bench.server.counts.heads == 5)
            // Each operation joins the waiting list first, and then waits without a slot.
            await until { operations.allSatisfy { $0.waitReason?.kind == .credential } }
            refreshes.open()
            #expect(await results(operations).allSatisfy { $0 == .success("Hello") })
            #expect(bench.server.counts.heads == 45)
            #expect(bench.asked.events == ["old"])
            #expect(operations.map(\.attemptCount) == Array(repeating: 2, count: 5) + Array(repeating: 1, count: 35))
        }
        #expect(authenticator.postponedCount == 0)
        try await bench.bench.checkNothingIsLeft()
    }

    @Test func `a thousand requests wait for a refresh that fails: all fail after that one refresh`() async throws {
        let bench = try TokenBench(), refreshes = Gate()
        let authenticator = bench.authenticator(
            change: { $0.name = "shop" },
            refresh: {
                await refreshes.passage()
                throw Refusal()
            })
        let queue = QueueManager("api", width: 8)
        let operations = bench.operations(1_000, authenticator)
        let blocked = bench.operations(4, authenticator)
        try queue.add(operations)
        async let failures = withTaskGroup(of: NetworkError?.self) { group in
            for operation in blocked {
                group.addTask {
                    try? await TestThread.run {
                        do { _ = try operation.startAndWait() } catch { return }
                    }
                    return operation.outcome?.error
                }
            }
            return await group.reduce(into: [NetworkError.Code?]()) { $0.append($1?.code) }
        }
        // The operations free their slots, so that all of them can wait.
        await until { authenticator.postponedCount == 1_004 }
        #expect(bench.server.counts.heads <= 12)
        await until { operations[0].waitReason?.kind == .credential }
        #expect(queue.explain(operations[0]).contains("waiting for a credential (shop)"))
        refreshes.open()
        #expect(
            await results(operations).allSatisfy { $0?.error?.code == .refreshFailed && $0?.error?.cause is Refusal })
        #expect(await failures == Array(repeating: .refreshFailed, count: 4))
        #expect(bench.asked.events.count == 1)
        await queue.drained()
        // The failure is remembered for this credential, and forgotten with the next credential.
        #expect(await failure(of: bench.operation(authenticator))?.code == .refreshFailed)
        #expect(bench.asked.events.count == 1)
        authenticator.set("new")
        #expect(try await bench.operation(authenticator).run() == "Hello")
    }

    @Test("A refresh that hangs times out and fails the waiting operations; its late result is still used")
    func neverAnswers() async throws {
        let bench = try TokenBench(), refreshes = Gate()
        let authenticator = bench.authenticator(refresh: refreshes.opening("new"))
        let operations = bench.operations(10, authenticator)
        for operation in operations { operation.start() }
        await until { authenticator.postponedCount == 10 && bench.clock.nextDue != nil }
        bench.clock.advance(by: .milliseconds(29_999))
        #expect(operations.allSatisfy { $0.outcome == nil })
        bench.clock.advance(by: .milliseconds(1))
        #expect(await results(operations).allSatisfy { $0?.error?.code == .refreshTimedOut })
        #expect(await failure(of: bench.operation(authenticator))?.code == .refreshTimedOut)
        #expect(authenticator.credential == nil)
        refreshes.open()
        await until { authenticator.credential == "new" }
        #expect(try await bench.operation(authenticator).run() == "Hello")
        #expect(bench.asked.events.count == 1)
        await until { bench.clock.pendingCount == 0 }
    }

    @Test("A refresh continues when the operation that triggered it or all waiting operations are canceled")
    func triggerIsCancelled() async throws {
        for cancelsAll in [false, true] {
            let bench = try TokenBench(), refreshes = Gate()
            let authenticator = bench.authenticator(refresh: {
                await refreshes.passage()
                try Task.checkCancellation()
                return "new"
            })
            do {
                let operations = bench.operations(3, authenticator)
                operations[0].start()
                await until { authenticator.postponedCount == 1 }
                for operation in operations.dropFirst() { operation.start() }
                await until { authenticator.postponedCount == 3 }
                let owner = OperationOwner.named("screen of \(bench.server.port)")
                for operation in operations.prefix(cancelsAll ? 3 : 1) { operation.owner = owner }
                OperationOwner.cancelOperations(ownedBy: owner)
                #expect(operations[0].isFinished)
                await until { authenticator.postponedCount == (cancelsAll ? 0 : 2) }
                refreshes.open()
                await until { authenticator.credential == "new" }
                let rest = await results(Array(operations.dropFirst(cancelsAll ? 3 : 1)))
                #expect(rest.allSatisfy { $0 == .success("Hello") })
                #expect(try await bench.operation(authenticator).run() == "Hello")
                #expect(bench.asked.events.count == 1)
            }
            try await bench.bench.checkNothingIsLeft()
        }
    }

    @Test func `two realms refresh independently of each other`() async throws {
        let benches = [try TokenBench(), try TokenBench()], gates = [Gate(), Gate()]
        let authenticators = zip(benches, gates).map { bench, gate in
            bench.authenticator(
                "old", change: { $0.origins = [bench.server.url("/any")] }, refresh: gate.opening("new"))
        }
        // Each operation has both authenticators, and gets the credential for its origin.
        let operations = benches.map { bench in
            (0..<10).map { _ in
                let operation = bench.operation(authenticators[0])
                operation.authenticate(by: authenticators[1])
                return operation
            }
        }
        for operation in operations.joined() { operation.start() }
        await until { authenticators.allSatisfy { $0.postponedCount == 10 } }
        gates[1].open()
        #expect(await results(operations[1]).allSatisfy { $0 == .success("Hello") })
        #expect(authenticators[0].postponedCount == 10)
        gates[0].open()
        #expect(await results(operations[0]).allSatisfy { $0 == .success("Hello") })
        #expect(benches.map(\.asked.events.count) == [1, 1])
    }

    @Test
    func `a 401 with the refreshed token fails the operation with an error that contains the response`() async throws {
        let bench = try TokenBench()
        let authenticator = bench.authenticatorForOneThatWaits { "wrong" }
        let error = await failure(of: bench.operation(authenticator))
        #expect(error?.code == .credentialRejected && error?.status == 401)
        #expect((error?.cause as? NetworkError)?.code == .unacceptableStatus)
        #expect(error?.attempts.map(\.status) == [401, 401])
        #expect(error?.attempts.map(\.putAside?.kind) == [.credential, nil])
        #expect(bench.server.requests.map { $0["Authorization"] } == ["Bearer old", "Bearer wrong"])
        #expect(bench.asked.events == ["old"])
    }

    @Test
    func `a late 401 for a token that was refreshed meanwhile is replayed without another refresh`() async throws {
        let bench = try TokenBench(), lateAnswer = Gate()
        bench.serve("/late") { _ in .status(401).after(lateAnswer) }
        let authenticator = bench.authenticator()
        let late = bench.operation(authenticator, "/late")
        await bench.server.isReached(by: late)
        #expect(try await bench.operation(authenticator).run() == "Hello")
        lateAnswer.open()
        #expect(try await late.value == "Hello")
        #expect(bench.asked.events.count == 1)
        #expect(bench.server.counts.heads == 4)
    }

    @Test func `a token that expires soon is refreshed before a request is sent with it`() async throws {
        let bench = try TokenBench()
        bench.good.value = "old"
        let authenticator = bench.authenticator(lifetime: { _ in .seconds(3600) }, refresh: { "new" })
        #expect(try await bench.operation(authenticator).run() == "Hello")
        bench.good.value = "new"
        bench.clock.advance(by: .seconds(3540))
        #expect(try await bench.operation(authenticator).run() == "Hello")
        #expect(bench.server.requests.map { $0["Authorization"] } == ["Bearer old", "Bearer new"])
        #expect(bench.asked.events == ["old"])
    }

    @Test func `requests of the refresh itself do not wait for the refresh, even from the same base`() async throws {
        let bench = try TokenBench()
        bench.server.route("GET", "/token") { _ in .json("[\"new\"]") }
        bench.server.route("GET", "/album") { $0["Authorization"] == "Bearer new" ? .json("[1]") : .status(401) }
        let shop = Shared(NetworkBase(bench.server.url("/")))
        let authenticator = bench.authenticator(refresh: {
            let base = shop.value
            return try await base.get("token", as: [String].self).run()[0]
        })
        shop.value.session = bench.bench.session
        shop.value.authenticate(by: authenticator)
        let base = shop.value
        #expect(try await base.get("album", as: [Int].self).run() == [1])
        #expect(bench.server.requests.map(\.path) == ["/album", "/token", "/album"])
        #expect(bench.server.requests[1]["Authorization"] == nil)
    }

    @Test func `no token is sent to an origin outside the realm, and its 401 starts no refresh`() async throws {
        let bench = try TokenBench(), other = try TokenBench()
        let authenticator = bench.authenticator(change: { $0.origins = [bench.server.url("/")] })
        #expect(await failure(of: other.operation(authenticator))?.code == .unacceptableStatus)
        #expect(other.server.requests.map { $0["Authorization"] } == [nil])
        // The first server redirects to the other server.
        let target = other.server.url("/").absoluteString
        bench.server.route("GET", "/away") { _ in .redirect(to: target) }
        let error = await failure(of: bench.operation(authenticator, "/away"))
        #expect(error?.code == .unacceptableStatus && error?.status == 401)
        #expect(other.server.requests.map { $0["Authorization"] } == [nil, nil])
        #expect(bench.asked.events == [])
        // A 403 is not a 401 either.
        bench.server.route("GET", "/") { _ in .status(403) }
        #expect(await failure(of: bench.operation(authenticator))?.status == 403)
        #expect(bench.asked.events == [])
    }

    @Test("After signing out, waiting operations fail, no token is sent, and a refreshed token is dropped")
    func signOut() async throws {
        let bench = try TokenBench(), refreshes = Gate(), isOver = Gate()
        // The lifetime is requested when the token has arrived.
        let authenticator = bench.authenticator(
            lifetime: { token in
                if token == "new" { isOver.open() }
                return nil
            },
            refresh: refreshes.opening("new"))
        let operation = bench.operation(authenticator)
        operation.start()
        // A refresh that has not begun would be dropped.
        _ = await bench.asked.events(atLeast: 1)
        await until { authenticator.postponedCount == 1 }
        authenticator.signOut()
        #expect(await results([operation])[0]?.error?.code == .signedOut)
        refreshes.open()
        await isOver.passage()
        #expect(await failure(of: bench.operation(authenticator))?.code == .signedOut)
        #expect(bench.server.counts.heads == 1)
        #expect(authenticator.credential == nil)
        authenticator.set("new")
        #expect(try await bench.operation(authenticator).run() == "Hello")
    }

    @Test
    func `without a refresh function, operations wait until a token is set or the wait is given up`() async throws {
        let bench = try TokenBench()
        var options = AuthenticationOptions()
        options.eventHandler = { [events = bench.events] in events.record($0) }
        let authenticator = Authenticator<String>(
            options: options, apply: { try $1.with(query: "token", $0) }, refresh: nil)
        bench.server.route("GET", "/") { $0.query == "token=new" ? .text("Hello") : .status(401) }
        let operations = bench.operations(3, authenticator)
        for operation in operations { operation.start() }
        await until { authenticator.postponedCount == 3 }
        #expect(bench.server.counts.heads == 0)
        #expect(
            authenticator.postponed.map(ObjectIdentifier.init).sorted()
                == operations.map(ObjectIdentifier.init).sorted())
        _ = await bench.events.events(atLeast: 1)
        authenticator.failPostponed(because: Refusal())
        #expect(await results(operations).allSatisfy { $0?.error?.cause is Refusal })
        let later = bench.operation(authenticator)
        later.start()
        await until { authenticator.postponedCount == 1 }
        _ = await bench.events.events(atLeast: 3)
        authenticator.set("new")
        #expect(try await later.value == "Hello")
        // The event is reported again after the wait was given up.
        let events = await bench.events.events(atLeast: 5)
        #expect(events.map(\.kind) == [.credentialWanted, .failed, .credentialWanted, .credentialCame, .released])
    }
}
