// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// Credentials that are rejected and renewed, against a real server.
@Suite("Authentication", .timeLimit(.minutes(1)))
struct AuthenticationTests {
    private func results(_ operations: [NetworkDataOperation<String>]) async -> [OperationOutcome<
        String, NetworkError
    >?] {
        for operation in operations { await operation.ended() }
        return operations.map(\.outcome)
    }

    @Test(
        "Forty requests with a token that is out of date: forty successes, one refresh, none with the old one meanwhile"
    )
    func forty() async throws {
        let bench = try TokenBench(), (rejects, refreshes) = (Gate(), Gate())
        bench.serve { _ in .status(401).after(rejects) }
        let authenticator = bench.authenticator(refresh: {
            await refreshes.passage()
            return "new"
        })
        do {
            let operations = bench.operations(40, authenticator)
            for operation in operations.prefix(5) { operation.start() }
            _ = await bench.server.heads(atLeast: 5)
            rejects.open()
            await until { authenticator.postponedCount == 5 }
            for operation in operations.dropFirst(5) { operation.start() }
            await until { authenticator.postponedCount == 40 }
            #expect(bench.server.counts.heads == 5)
            // Each is in the line first, and rests then.
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

    @Test("A thousand requests and a refresh that fails: a thousand failures, one refresh, and nobody hangs")
    func thousand() async throws {
        let bench = try TokenBench(), refreshes = Gate()
        let authenticator = bench.authenticator(refresh: {
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
        // They give up their places, so that all of them come to wait.
        await until { authenticator.postponedCount == 1_004 }
        #expect(bench.server.counts.heads <= 12)
        await until { operations[0].waitReason?.kind == .credential }
        #expect(queue.explain(operations[0]).description.contains("waiting for a credential"))
        refreshes.open()
        #expect(
            await results(operations).allSatisfy { $0?.error?.code == .refreshFailed && $0?.error?.cause is Refusal })
        #expect(await failures == Array(repeating: .refreshFailed, count: 4))
        #expect(bench.asked.events.count == 1)
        await queue.drained()
        // It is remembered for this credential, and forgotten with the next one.
        #expect(await failure(of: bench.operation(authenticator))?.code == .refreshFailed)
        #expect(bench.asked.events.count == 1)
        authenticator.set("new")
        #expect(try await bench.operation(authenticator).run() == "Hello")
    }

    @Test("A refresh that never answers fails those that wait when its time is over; what it gives after all is taken")
    func neverAnswers() async throws {
        let bench = try TokenBench(), refreshes = Gate()
        let authenticator = bench.authenticator(refresh: {
            await refreshes.passage()
            return "new"
        })
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

    @Test("A refresh goes on when the operation that began it is cancelled, and when all are that wait")
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

    @Test("Two realms at once know nothing of each other")
    func twoRealms() async throws {
        let benches = [try TokenBench(), try TokenBench()], gates = [Gate(), Gate()]
        let authenticators = zip(benches, gates).map { bench, gate in
            bench.authenticator(
                "old", change: { $0.origins = [bench.server.url("/any")] },
                refresh: {
                    await gate.passage()
                    return "new"
                })
        }
        // Each has both, and gets the one for the place to which it goes.
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

    @Test("A 401 with the fresh token fails with an error that says so, and with the response in it")
    func secondRejection() async throws {
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

    @Test("A 401 that comes late, for a token that was renewed meanwhile, is replayed without a refresh")
    func lateRejection() async throws {
        let bench = try TokenBench(), lateAnswer = Gate()
        bench.serve("/late") { _ in .status(401).after(lateAnswer) }
        let authenticator = bench.authenticator()
        let late = bench.operation(authenticator, "/late")
        late.start()
        _ = await bench.server.heads(atLeast: 1)
        #expect(try await bench.operation(authenticator).run() == "Hello")
        lateAnswer.open()
        #expect(try await late.value == "Hello")
        #expect(bench.asked.events.count == 1)
        #expect(bench.server.counts.heads == 4)
    }

    @Test("A token that ends soon is renewed before a request leaves with it")
    func proactive() async throws {
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

    @Test("Operations of the refresh itself never wait for it, though they are made from the same base")
    func exemption() async throws {
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

    @Test("No token goes to a place that the realm does not cover, and what such a place says does not matter")
    func otherPlaces() async throws {
        let bench = try TokenBench(), other = try TokenBench()
        let authenticator = bench.authenticator(change: { $0.origins = [bench.server.url("/")] })
        #expect(await failure(of: other.operation(authenticator))?.code == .unacceptableStatus)
        #expect(other.server.requests.map { $0["Authorization"] } == [nil])
        // The first place leads there.
        let target = other.server.url("/").absoluteString
        bench.server.route("GET", "/away") { _ in .redirect(to: target) }
        let error = await failure(of: bench.operation(authenticator, "/away"))
        #expect(error?.code == .unacceptableStatus && error?.status == 401)
        #expect(other.server.requests.map { $0["Authorization"] } == [nil, nil])
        #expect(bench.asked.events == [])
        // Nor is 403 a 401.
        bench.server.route("GET", "/") { _ in .status(403) }
        #expect(await failure(of: bench.operation(authenticator))?.status == 403)
        #expect(bench.asked.events == [])
    }

    @Test("After signing out no token leaves, those that wait fail, and what the refresh gives is dropped")
    func signOut() async throws {
        let bench = try TokenBench(), refreshes = Gate(), isOver = Gate()
        // It is asked how long a token is good when that has come.
        let authenticator = bench.authenticator(
            lifetime: { token in
                if token == "new" { isOver.open() }
                return nil
            },
            refresh: {
                await refreshes.passage()
                return "new"
            })
        let operation = bench.operation(authenticator)
        operation.start()
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

    @Test("Where nobody can be asked, operations wait until somebody signs in, or gives up")
    func fromOutside() async throws {
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
        authenticator.failPostponed(because: Refusal())
        #expect(await results(operations).allSatisfy { $0?.error?.cause is Refusal })
        let later = bench.operation(authenticator)
        later.start()
        await until { authenticator.postponedCount == 1 }
        authenticator.set("new")
        #expect(try await later.value == "Hello")
        // It is said again after somebody gave up.
        let events = await bench.events.events(atLeast: 5)
        #expect(events.map(\.kind) == [.credentialWanted, .failed, .credentialWanted, .credentialCame, .released])
    }
}
