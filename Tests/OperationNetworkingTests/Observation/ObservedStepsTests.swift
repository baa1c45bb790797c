// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit
import Testing

@testable import OperationNetworking

/// A clock that runs a closure once, when a certain thread asks for the time.
private final class MeddlingClock: OperationClock {
    private let plan = Locked<(thread: pthread_t, act: @Sendable () -> Void)?>(nil)
    private let system: any OperationClock = .system

    func whenThisThreadAsks(_ act: @escaping @Sendable () -> Void) { plan.withLock { $0 = (pthread_self(), act) } }

    var now: OperationInstant {
        let act: (@Sendable () -> Void)? = plan.withLock { plan in
            guard let present = plan, pthread_equal(present.thread, pthread_self()) != 0 else { return nil }
            plan = nil
            return present.act
        }
        act?()
        return system.now
    }

    func schedule(at instant: OperationInstant, _ action: @escaping @Sendable () -> Void) -> any OperationTimer {
        system.schedule(at: instant, action)
    }
}

/// The first request retains an object and fails.
///
/// Later requests do not retain it.
private final class Keeping: NetworkDataOperation<Int>, @unchecked Sendable {
    // Sendable: its state is behind a lock.
    private let kept: Locked<LastWord?>

    init(_ bench: OperationBench, _ farewell: LastWord) {
        kept = Locked(farewell)
        super.init(url: bench.server.url("/"), urlSession: bench.session) { data, _ in data.count }
    }

    override func adapt(_ request: NetworkRequest) async throws -> NetworkRequest {
        let farewell = kept.withLock { kept -> LastWord? in
            defer { kept = nil }
            return kept
        }
        guard let farewell else {
            // Meanwhile, other threads release the first request, so that the operation is usually the last owner.
            for _ in 0..<1_000 { await Task.yield() }
            return request
        }
        let body = RequestBody.stream(length: 4, canBeSentAgain: true) {
            withExtendedLifetime(farewell) {}
            throw Refusal()
        }
        return try NetworkRequest("PUT", url: request.url, body: body)
    }
}

@Suite("Steps of network operations that cross between threads", .timeLimit(.minutes(3)))
struct ObservedStepsTests {
    @Test func `the time of an event is never before that of the previous event`() async throws {
        let bench = try OperationBench { _ in .redirect(to: "/there") }, log = EventLog()
        bench.server.route("GET", "/there") { _ in .text("Hello") }
        let operation = bench.text()
        let count = Locked(0), system = SystemClock.shared
        // The clock alternates between two times, like threads that read the clock before they acquire a lock.
        operation.clock = ClosureClock(
            over: system, now: { system.now.advanced(by: count.next() % 2 == 0 ? .seconds(-1) : .zero) })
        #expect(try await log.value(of: operation) == "Hello")
        let times = log.events.events.flatMap { [$0.sinceOperationBegan, $0.sinceAttemptBegan, $0.sinceSending] }
        #expect(times.compactMap { $0 }.allSatisfy { $0 >= .zero })
    }

    @Test("An operation that is resumed just when its result arrives reports the attempt before the operation")
    func resumedMeanwhile() async throws {
        let bench = try OperationBench { _ in .text("Hello") }, log = EventLog(), clock = MeddlingClock()
        let itself = Shared<NetworkDataOperation<String>?>(nil)
        let operation = bench.watched(
            NetworkDataOperation(url: bench.server.url("/"), urlSession: bench.session) { data, _ in
                itself.value?.suspend()
                clock.whenThisThreadAsks {
                    let (operation, isResumed) = (itself.value, DispatchSemaphore(value: 0))
                    Thread.detachNewThread {
                        operation?.resume()
                        isResumed.signal()
                    }
                    isResumed.wait()
                }
                return String(decoding: data, as: UTF8.self)
            })
        itself.value = operation
        operation.clock = clock
        operation.addNetworkObserver(log)
        #expect(try await operation.run() == "Hello")
        itself.value = nil
        await log.checkEnd()
        let end = log.events.events.first { $0.kind == .attemptEnded }
        #expect(end?.ending == .success && end?.responseBody == Data("Hello".utf8))
        #expect(log.kinds.suffix(2) == [.attemptEnded, .operationEnded])
    }

    @Test func `if an operation finishes itself within an attempt, the attempt ends in the same way`() async throws {
        for isSuccess in [true, false] {
            let bench = try OperationBench { _ in .text("Hello") }, log = EventLog()
            let itself = Shared<NetworkDataOperation<Int>?>(nil)
            let operation = bench.watched(
                NetworkDataOperation<Int>(url: bench.server.url("/"), urlSession: bench.session) { data, _ in
                    if isSuccess {
                        itself.value?.finish(withResult: 7)
                    } else {
                        let error = NetworkError(code: .transferFailed, phase: .evaluating, message: "Mine.")
                        itself.value?.finish(withError: error)
                    }
                    return data.count
                })
            itself.value = operation
            operation.addNetworkObserver(log)
            operation.start()
            await log.ended()
            itself.value = nil
            log.check()
            let end = log.events.events.first { $0.kind == .attemptEnded }
            #expect(end?.ending == (isSuccess ? .success : .failure))
            #expect(end?.error?.message == (isSuccess ? nil : "Mine."))
        }
    }

    @Test("An object that a request retained may cancel the operation when it is released", arguments: [true, false])
    func farewell(isObserved: Bool) async throws {
        let bench = try OperationBench(), log = EventRecorder<NetworkEvent.Kind>()
        bench.server.route("/") { _ in .silence }
        let itself = Shared<Keeping?>(nil), ended = Gate()
        do {
            let operation = Keeping(bench, LastWord { itself.value?.cancel() })
            itself.value = operation
            operation.callbackQueue = bench.callbacks
            operation.networkAttempts.changePolicies { $0[.manual] = Again(most: 2) }
            if isObserved { operation.addNetworkObserver(Watcher { log.record($0.kind) }) }
            operation.observe { _ in ended.open() }
            operation.start()
        }
        await ended.passage()
        #expect(itself.value?.isCancelled == true && itself.value?.attemptCount == 2)
        itself.value = nil
    }

    @Test func `a sent body is reported for each request that contains it`() async throws {
        let bench = try OperationBench(), log = EventLog()
        bench.server.route("PUT", "/") { _ in .redirect(to: "/there", status: 307) }
        bench.server.route("PUT", "/there") { _ in .text("Hello") }
        let operation = bench.upload(method: "PUT", body: .data(Data("body".utf8)))
        #expect(try await log.value(of: operation) == "Hello")
        #expect(log.events.events.filter { $0.kind == .bodySent }.map(\.hop) == [1, 2])
    }

    @Test("A failure during a suspension is reported immediately, and a later cancellation does not replace it")
    func failedWhileSuspended() async throws {
        let bench = try OperationBench { _ in .text("Hello") }, log = EventLog()
        let itself = Shared<NetworkDataOperation<Int>?>(nil)
        let operation = bench.watched(
            NetworkDataOperation<Int>(url: bench.server.url("/"), urlSession: bench.session) { _, _ in
                itself.value?.suspend()
                throw Refusal()
            })
        itself.value = operation
        operation.addNetworkObserver(log)
        operation.start()
        await until { log.kinds.contains(.attemptEnded) }
        #expect(!log.kinds.contains(.resumed))
        operation.cancel()
        itself.value = nil
        await log.checkEnd()
        let ends = log.events.events.filter { $0.kind == .attemptEnded }
        #expect(ends.map(\.ending) == [.failure] && ends[0].error != nil)
        #expect(log.events.events.last?.ending == .cancelled)
    }

    @Test func `a rejected response with a long body still reports its headers`() async throws {
        let bench = try OperationBench { _ in .repeating([7], count: 100_000) }, log = EventLog()
        let operation = bench.text()
        operation.networkAttempts.changePolicies { $0[.manual] = RefusingFirst() }
        #expect(try await log.value(of: operation).count == 100_000)
        #expect(log.kinds.count { $0 == .responded } == 2)
        #expect(log.events.events.first { $0.kind == .attemptEnded }?.head?.status == 200)
    }
}

/// Rejects the first response.
private final class RefusingFirst: AttemptPolicy, @unchecked Sendable {
    // Sendable: all mutable state is behind a lock.

    override func refuses(_ head: ResponseHead, of request: NetworkRequest, _ number: Int) -> Bool { number == 1 }

    override func decide(_ report: FailedAttempt, for owner: any AttemptOwner, _ answer: @escaping PolicyAnswer) {
        answer(AttemptPolicyDecision(report.number < 2 ? .again(after: .zero) : .fail))
    }
}
