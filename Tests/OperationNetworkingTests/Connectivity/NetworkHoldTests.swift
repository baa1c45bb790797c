// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// Tests queues that are held while the network is gone.
@Suite(.timeLimit(.minutes(1)))
struct NetworkHoldTests {
    private let network = ManualConnectivity(.unsatisfied)
    private let clock = ManualClock()

    private func hold(_ queue: QueueManager, _ monitor: ManualConnectivity? = nil) -> NetworkHold {
        queue.hold(whileOffline: monitor ?? network, settling: .seconds(1), clock: clock, chance: { 0.5 })
    }

    /// The network returns, and stays until it has settled.
    private func comeBack() {
        network.write(.satisfied)
        clock.advance(by: .milliseconds(1_500))
    }

    @Test func `no operation starts while the network is gone, and explain names the reason`() async throws {
        let queue = QueueManager("uploads", width: 2)
        let hold = hold(queue)
        let operation = ClosureOperation { 42 }.named("upload")
        try queue.add(operation)
        #expect(queue.isSuspended)
        #expect(
            queue.explain(operation)
                == "upload is ready in queue uploads: the queue is suspended (the network is unavailable).")
        network.write(.satisfied)
        clock.advance(by: .milliseconds(1_499))
        #expect(queue.isSuspended, "the network has not settled yet")
        clock.advance(by: .milliseconds(1))
        #expect(try await operation.value == 42)
        #expect(!queue.isSuspended)
        network.write(.unsatisfied)
        #expect(queue.isSuspended)
        network.write(.satisfied)
        hold.cancel()
        #expect(!queue.isSuspended && network.observerCount == 0 && clock.pendingCount == 0)
        network.write(.satisfied)
        network.write(.unsatisfied)
        #expect(!queue.isSuspended)
    }

    @Test func `suspensions by the user and by the network are independent`() throws {
        let queue = QueueManager("uploads")
        queue.suspend(because: "the user asked for it")
        let hold = hold(queue)
        let operation = ClosureOperation { 42 }.named("upload")
        try queue.add(operation)
        #expect(queue.explain(operation).contains("(the user asked for it, the network is unavailable)"))
        comeBack()
        #expect(queue.isSuspended && queue.isSuspendedByUser)
        network.write(.unsatisfied)
        queue.isSuspended = false
        #expect(queue.isSuspended && !queue.isSuspendedByUser, "the network is still gone")
        comeBack()
        #expect(!queue.isSuspended)
        withExtendedLifetime(hold) {}
    }

    @Test func `two holds of a queue are independent, and releasing a hold ends it`() {
        let queue = QueueManager("uploads"), other = ManualConnectivity(.unsatisfied)
        var holds = [hold(queue), hold(queue, other)]
        comeBack()
        #expect(queue.isSuspended)
        holds.removeLast()
        #expect(!queue.isSuspended && other.observerCount == 0)
        withExtendedLifetime(holds) {}
    }

    @Test func `carryOn repeats only failures without a network, once the network returns`() async throws {
        let queue = QueueManager("uploads", width: 4), session = StubSession(), network = network, made = Locked(0)
        network.write(.satisfied)
        session.route(nil, "/lost") { _ in
            if made.withLock({ $0 }) == 2 { return .text("here again") }
            network.write(.unsatisfied)
            return .failure(.connectionLost)
        }
        session.route(nil, "/wrong") { _ in .status(404) }
        let url = try #require(URL(string: "http://example.com"))
        func add(_ path: String) throws -> NetworkDataOperation<Data> {
            try queue.add(remaking: {
                made.withLock { $0 += path == "lost" ? 1 : 0 }
                return NetworkDataOperation(url: url.appending(path: path), urlSession: session) { data, _ in data }
            })
        }
        let callbacks = DispatchQueue(label: "NetworkHoldTests"), told = EventRecorder<Bool>()
        callbacks.suspend()
        let keeper = queue.carryOn(
            whileOffline: network, settling: .seconds(1), clock: clock, callbackQueue: callbacks,
            offlineHandler: { told.record($0) }, chance: { 0.5 })
        let wrong = try add("wrong")
        await wrong.ended()
        let lost = try add("lost")
        await lost.ended()
        #expect(queue.isSuspended && lost.outcome?.error?.code == .connectionLost)
        comeBack()
        while queue.counts.finished == 0 { await Task.yield() }
        #expect(made.withLock { $0 } == 2 && queue.counts.failed == 2)
        #expect(queue.failures.map { ($0.error as? NetworkError)?.status } == [404])
        keeper.cancel()
        #expect(network.observerCount == 0 && clock.pendingCount == 0)
        callbacks.resume()
        await withCheckedContinuation { done in callbacks.async { done.resume() } }
        #expect(told.events.isEmpty, "a canceled token calls no handler, even if a call was waiting")
    }

    @Test func `carryOn also repeats network failures of other sessions, but no old failures`() async throws {
        let queue = QueueManager("uploads", width: 1), made = Locked(0)
        func add(_ error: any Error & Sendable) throws -> ClosureOperation<Int, any Error> {
            try queue.add(remaking: {
                made.withLock { $0 += 1 }
                return ClosureOperation { () throws -> Int in throw error }
            })
        }
        for error in [URLError(.notConnectedToInternet), URLError(.badURL)] { try await add(error).ended() }
        await until { queue.failures.count == 2 }
        let lost = try #require(queue.failures.map(\.date).min())
        queue.runNetworkFailuresAgain(lost + 61)
        #expect(made.withLock { $0 } == 2, "the network was lost long after these failures")
        queue.runNetworkFailuresAgain(lost + 50)
        await until { made.withLock { $0 } == 3 && queue.failures.count == 2 }
        #expect(queue.failures.allSatisfy { abs($0.date.timeIntervalSinceNow) < 3600 })
    }

    @Test func `no operation starts while the network keeps coming and going`() async {
        let queue = QueueManager("uploads"), told = EventRecorder<Bool>()
        let token = queue.hold(whileOffline: network, clock: clock) { told.record($0) }
        for _ in 0..<3 {
            network.write(.satisfied)
            clock.advance(by: .milliseconds(400))
            network.write(.unsatisfied)
            #expect(queue.isSuspended && clock.pendingCount == 0)
        }
        comeBack()
        #expect(await told.events(atLeast: 2) == [true, false] && !queue.isSuspended)
        withExtendedLifetime(token) {}
    }

    @Test func `a change of interface does not restart the settling time`() {
        let queue = QueueManager("uploads"), token = hold(queue)
        network.write(.satisfied)
        clock.advance(by: .milliseconds(1_000))
        network.write(Connectivity(.satisfied, interfaces: [.wifi]))
        #expect(queue.isSuspended && clock.pendingCount == 1)
        clock.advance(by: .milliseconds(500))
        #expect(!queue.isSuspended)
        withExtendedLifetime(token) {}
    }

    @Test func `a held queue without other references stays alive and runs when the network returns`() async throws {
        let operation = ClosureOperation { 42 }
        let token: NetworkHold
        do {
            let queue = QueueManager("uploads")
            token = hold(queue)
            try queue.add(operation)
        }
        #expect(operation.state == .notStarted)
        comeBack()
        #expect(try await operation.value == 42)
        token.cancel()
    }

    @Test func `a queue that was shut down is no longer held`() async {
        let queue = QueueManager("uploads"), token = hold(queue)
        comeBack()
        await queue.shutDown(grace: .zero)
        network.write(.unsatisfied)
        #expect(!queue.isSuspended)
        token.cancel()
    }

    @Test func `Race: after concurrent changes by the network, the user and the hold, the queue runs`() async throws {
        for _ in 0..<Rounds.count(ci: 100, soak: 10_000) {
            let queue = QueueManager("uploads"), network = network
            network.write(.satisfied)
            let hold = hold(queue)
            try await TestThread.run {
                ThreadTeam(count: 3).run([
                    { for number in 0..<20 { network.write(number % 2 == 0 ? .unsatisfied : .satisfied) } },
                    { for number in 0..<20 { queue.isSuspended = number % 2 == 0 } },
                    { hold.cancel() },
                ])
            }
            #expect(!queue.isSuspended)
        }
    }
}
