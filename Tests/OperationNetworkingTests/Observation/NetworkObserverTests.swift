// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Observers of network operations", .timeLimit(.minutes(3)))
struct NetworkObserverTests {
    @Test func `a request with a redirect reports each step once, in order, with its details`() async throws {
        let bench = try OperationBench { _ in .redirect(to: "/there") }, log = EventLog()
        bench.server.route("GET", "/there") { _ in .text("Hello") }
        let operation = bench.text().named("greeting")
        #expect(try await log.value(of: operation) == "Hello")
        #expect(
            log.kinds == [
                .operationBegan, .attemptBegan, .sending, .hopBegan, .leftBehind, .hopEnded, .hopBegan, .responded,
                .hopEnded, .attemptEnded, .operationEnded,
            ])
        let events = log.events.events
        #expect(events.allSatisfy { $0.operationName == "greeting" && $0.operationID == events[0].operationID })
        #expect(events.map(\.hop) == [0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 0])
        #expect(events.map(\.attempt) == [0] + Array(repeating: 1, count: 10))
        #expect(events.map { $0.head?.status } == [nil, nil, nil, nil, 302, 302, nil, 200, 200, 200, 200])
        #expect(events[6].request?.url.path == "/there")
        for index in [5, 8, 9] { #expect(events[index].metrics?.ended != nil, "\(index)") }
        #expect(events[9].ending == .success && events[10].ending == .success)
        #expect(events[9].responseBody == Data("Hello".utf8) && events[9].receivedBytes == 5)
        #expect(events[0].sinceOperationBegan == .zero && events[10].sinceOperationBegan != nil)
        #expect(events[9].sinceSending != nil && events[10].sinceAttemptBegan == nil)
    }

    @Test func `the headers of a download are reported on arrival, before the file is complete`() async throws {
        let bench = try OperationBench(), log = EventLog(), rest = Gate()
        bench.server.route("GET", "/") { _ in
            .pattern(200_000, stallingAfter: 100_000, until: rest).with("ETag", "\"a\"")
        }
        let operation = bench.watched(
            NetworkDownloadOperation(url: bench.server.url("/"), urlSession: bench.session) { file, _ in
                try Data(contentsOf: file).count
            })
        operation.addNetworkObserver(log)
        operation.start()
        await until { log.kinds.contains(.responded) }
        rest.open()
        #expect(try await operation.value == 200_000)
        await log.checkEnd()
        #expect(
            log.kinds == [
                .operationBegan, .attemptBegan, .sending, .hopBegan, .responded, .hopEnded, .attemptEnded,
                .operationEnded,
            ])
        let (hop, end) = (log.events.events[5], log.events.events[6])
        #expect(hop.head?.status == 200 && hop.metrics?.ended != nil)
        #expect(end.receivedBytes == 200_000 && end.metrics?.bodyBytesReceived == 200_000 && end.responseBody == nil)
    }

    @Test func `repeated attempts are reported with the decision after each of them`() async throws {
        let retries = try RetryBench(), log = EventLog()
        retries.bench.server.route("/") { $0.number < 2 ? .status(503) : .text("Hello") }
        let operation = retries.text(retries.retry(), method: "PUT", body: .data(Data("body".utf8)))
        #expect(try await log.value(of: operation) == "Hello")
        let ends = log.events.events.filter { $0.kind == .attemptEnded }
        #expect(ends.map(\.ending) == [.failure, .failure, .success])
        #expect(ends.map { $0.error?.status } == [503, 503, nil])
        let decisions = log.events.events.compactMap(\.decision)
        #expect(decisions.map(\.decision.name) == ["again", "again"])
        #expect(decisions.map(\.reason) == [.mayPass, .mayPass])
        #expect(decisions.allSatisfy { $0.decision.delay != nil && $0.note != nil })
        #expect(log.kinds.count { $0 == .bodySent } == 3)
    }

    @Test func `waiting for a credential and its rejection are reported`() async throws {
        let tokens = try TokenBench(), log = EventLog()
        let operation = tokens.operation(tokens.authenticatorForOneThatWaits())
        #expect(try await log.value(of: operation) == "Hello")
        let decision = log.events.events.compactMap(\.decision).first
        #expect(decision?.decision.waitReason?.kind == .credential)
        #expect(log.events.events.last?.attempt == 2)
        // The next operation has no credential, and is held before it is sent.
        let second = EventLog(), held = tokens.operation(tokens.authenticator(nil))
        #expect(try await second.value(of: held) == "Hello")
        #expect(second.kinds.prefix(5) == [.operationBegan, .attemptBegan, .held, .wentOn, .sending])
        #expect(second.events.events[2].waitReason?.kind == .credential)
    }

    @Test func `waiting for the network is reported`() async throws {
        let offline = try OfflineBench(), log = EventLog()
        offline.bench.server.stop()
        await offline.bench.server.stopped()
        let operation = offline.operation()
        operation.addNetworkObserver(log)
        await offline.startsToWait(operation)
        #expect(log.events.events.last?.decision?.decision.waitReason?.kind == .network || log.kinds.last == .held)
        operation.cancel()
        await log.checkEnd()
        #expect(log.events.events.last?.ending == .cancelled)
        #expect(log.events.events.last?.cancellationCause == .requested)
    }

    @Test func `an observer of an operation, its base and its groups is called once`() async throws {
        let bench = try OperationBench(), log = EventLog(), values = EventRecorder<NetworkEvent.Kind>()
        bench.server.route("/*") { _ in .json("[1]") }
        var base = NetworkBase(bench.server.url("/"))
        base.session = bench.session
        base.observers = [log, Watcher { values.record($0.kind) }]
        let service = base
        let inner = GroupOperation { group in
            let child = service.get("a", as: [Int].self)
            child.addNetworkObserver(log)
            return try await group.run(child)
        }
        let outer = GroupOperation { group in try await group.run(inner) }
        inner.addNetworkObserver(log)
        outer.addNetworkObserver(log)
        outer.addNetworkObserver(Watcher { values.record($0.kind) })
        #expect(try await outer.run() == [1])
        await log.checkEnd()
        #expect(log.kinds.count { $0 == .operationBegan } == 1)
        await until { values.events.count { $0 == .operationEnded } == 2 }
        // An observer that is added during the group observes only operations that begin afterwards.
        let late = EventLog()
        let group = GroupOperation { group in
            _ = try await group.run(service.get("b", as: [Int].self))
            group.addNetworkObserver(late)
            return try await group.run(service.get("c", as: [Int].self))
        }
        #expect(try await group.run() == [1])
        await late.ended()
        #expect(late.events.events.allSatisfy { $0.request == nil || $0.request?.url.path == "/c" })
        #expect(late.kinds.count { $0 == .operationBegan } == 1)
        late.check()
    }

    @Test func `an operation that sets all of its policies is still observed by its groups`() async throws {
        let bench = try OperationBench { _ in .text("Hello") }, log = EventLog()
        let child = bench.text()
        (child.retry, child.offline, child.realms) = (nil, nil, [])
        let group = GroupOperation { group in try await group.run(child) }
        group.addNetworkObserver(log)
        #expect(try await group.run() == "Hello")
        await log.checkEnd()
        #expect(log.kinds.first == .operationBegan)
    }

    @Test func `a log of a base and a group writes each line once, and a changed copy writes too`() async throws {
        let bench = try OperationBench(), lines = EventRecorder<String>(), log = EventLog()
        bench.server.route("/*") { _ in .json("[1]") }
        let written = NetworkLog { lines.record($0) }
        var other = written
        other.level = .headers
        let more = other
        var base = NetworkBase(bench.server.url("/"))
        base.session = bench.session
        base.log = written
        base.observers = [written, log]
        let service = base
        let group = GroupOperation { group in try await group.run(service.get("a", as: [Int].self)) }
        group.addNetworkObserver(written)
        group.addNetworkObserver(more)
        #expect(try await group.run() == [1])
        await log.ended()
        let sent = lines.events.filter { $0.hasPrefix("→ #") }
        #expect(sent.count == 2 && sent.count { $0.contains("\n") } == 1, "\(sent)")
    }

    @Test func `adding an observer to an ended group logs a notice`() async throws {
        let notices = NoticeTaker.recorder(for: "ended group")
        let group = GroupOperation { _ in 1 }.named("ended group")
        #expect(try await group.run() == 1)
        group.addNetworkObserver(EventLog())
        #expect(notices.events.map(\.kind) == [.timing])
    }

    @Test func `an observer that is added after the start gets no events, and a notice is logged`() async throws {
        let bench = try OperationBench(), first = EventLog(), log = EventLog(), gate = Gate()
        let notices = NoticeTaker.recorder(for: "late observer")
        bench.server.route("/") { _ in .text("Hello").after(gate) }
        let operations = (0..<2).map { _ in bench.text() }
        operations[0].addNetworkObserver(first)
        for operation in operations {
            operation.name = "late observer"
            operation.start()
        }
        _ = await bench.server.heads(atLeast: 2)
        for operation in operations {
            operation.addNetworkObserver(log)
            // The same happens to a caller that had checked just before the start.
            #expect(!operation.networkAttempts.add(log, of: operation))
        }
        #expect(notices.events.map(\.kind) == [.timing, .timing])
        gate.open()
        for operation in operations { #expect(await operation.finalOutcome.result == "Hello") }
        operations[0].addNetworkObserver(log)
        #expect(notices.events.count == 3)
        await first.ended()
        await bench.settled()
        #expect(log.kinds.isEmpty)
    }

    @Test
    func `an event does not keep its operation alive, and an ended operation releases its observers`() async throws {
        let bench = try OperationBench(), log = EventLog(), observers = LiveObjects()
        bench.server.route("/") { _ in .text("Hello") }
        let operation = bench.text()
        operation.addNetworkObserver(log)
        operation.addNetworkObserver(observers.track(EventLog()))
        #expect(try await operation.run() == "Hello")
        await log.ended()
        let left = try await TestThread.run { observers.countAtRest() }
        #expect(left == 0)
        do {
            let others = (0..<3).map { _ in bench.text() }
            for other in others { other.addNetworkObserver(log) }
            #expect(try await others[0].run() == "Hello")
            // The last operation is neither started nor canceled.
            others[1].cancel()
        }
        await log.ended(3)
        withExtendedLifetime(operation) {}
        #expect(log.events.events.first?.operation === operation)
        // The operation that is still referenced, and its attempts.
        await until { bench.census.count <= 2 }
        #expect(log.events.events.last?.operation == nil)
    }

    @Test func `an operation that is canceled in its deinit reports its end`() async throws {
        final class Leaving: NetworkDataOperation<Int>, @unchecked Sendable {
            // Sendable: the class has no state.

            deinit { cancel() }
        }
        let bench = try OperationBench(), log = EventLog()
        do {
            let operation = Leaving(url: bench.server.url("/"), urlSession: bench.session) { data, _ in data.count }
            operation.addNetworkObserver(log)
        }
        await log.ended()
        #expect(log.kinds == [.operationEnded])
        #expect(log.events.events.first?.ending == .cancelled)
        #expect(log.events.events.first?.operation == nil)
    }
}
