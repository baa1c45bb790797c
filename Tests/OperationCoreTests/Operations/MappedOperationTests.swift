// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct MappedOperationTests {
    private let original = HandDriven()

    @Test func `mapResult, mapError and mapOutcome convert results, errors and outcomes`() {
        let first = HandDriven(hooks: .init(main: { $0.finish(withResult: 20) }))
        let mapped = first.mapResult { "\($0 + 1)" }
        mapped.start()
        #expect(mapped.outcome == .success("21"))
        #expect(first.outcome == .success(20))

        let second = HandDriven(hooks: .init(main: { $0.finish(withError: .second) }))
        let other = second.mapError { Flaw.converted("\($0)") }
        other.start()
        #expect(other.outcome == .failure(.converted("second")))

        let third = HandDriven(hooks: .init(main: { $0.finish(withError: .second) }))
        let whole: AsyncOperation<String, Never> = third.mapOutcome { .success($0.word) }
        whole.start()
        #expect(whole.outcome == .success("failure second"))
    }

    @Test func `mapResult keeps errors and mapError keeps results`() {
        let failing = HandDriven(hooks: .init(main: { $0.finish(withError: .first) })).mapResult { -$0 }
        failing.start()
        #expect(failing.outcome == .failure(.first))
        let succeeding = HandDriven(hooks: .init(main: { $0.finish(withResult: 4) })).mapError { _ in Flaw.second }
        succeeding.start()
        #expect(succeeding.outcome == .success(4))
    }

    @Test(arguments: [false, true])
    func `canceling a mapped operation cancels its original with the same cause`(startsOriginal: Bool) {
        let mapped = original.mapResult { $0 }
        if startsOriginal { original.start() } else { mapped.start() }
        mapped.cancel(because: .requested("enough"))
        #expect(Look(mapped) == .cancelled)
        #expect(original.cancellationCause?.message == "enough")
        #expect(original.calls.events == ["main", "cancel requested"])
    }

    @Test func `canceling the original cancels the mapped operation with the same cause`() {
        let mapped = original.mapResult { $0 }
        mapped.start()
        original.cancel(because: .requested("enough"))
        #expect(Look(mapped) == .cancelled)
        #expect(mapped.cancellationCause?.message == "enough")
    }

    @Test func `mapOutcome can convert a cancellation to a result`() {
        let mapped: AsyncOperation<String, Never> = original.mapOutcome { .success($0.word) }
        mapped.start()
        original.cancel()
        #expect(mapped.outcome == .success("cancelled requested"))
    }

    @Test func `mapping an operation that has ended converts its outcome immediately`() {
        let original = HandDriven(), cancelled = HandDriven()
        original.startAndFinish(withResult: 3)
        cancelled.start()
        cancelled.cancel(because: .requested("enough"))
        let mapped = original.mapResult { $0 * 2 }, other = cancelled.mapResult { $0 * 2 }
        #expect(Look(mapped) == .finished)
        mapped.start()
        other.start()
        #expect(mapped.outcome == .success(6))
        #expect(other.cancellationCause?.message == "enough")
        #expect(original.calls.events == ["main"])
    }

    @Test func `a mapped operation waits for an original that is already executing`() {
        let original = HandDriven.started()
        let mapped = original.mapResult { $0 * 2 }
        mapped.start()
        #expect(Look(mapped) == .executing)
        original.finish(withResult: 3)
        #expect(mapped.outcome == .success(6))
        #expect(original.calls.events == ["main"])
    }

    @Test func `a mapped operation waits for the dependencies of its original`() throws {
        let upstream = HandDriven()
        let original = HandDriven(hooks: .init(main: { $0.finish(withResult: 1) }))
        try original.depend(on: upstream, otherwise: .cancel)
        let mapped = original.mapResult { $0 }
        mapped.start()
        #expect(Look(original) == .blocked)
        upstream.start()
        upstream.cancel()
        #expect(mapped.cancellationCause?.code == .dependencyCancelled)
    }

    @Test func `a mapped operation waits for an original that a queue runs`() async throws {
        let release = Gate(), began = Gate()
        let original = SyncProbe { operation in
            began.open()
            release.wait()
            operation.finish(withResult: 2)
        }
        let queue = OperationQueue()
        queue.addOperation(original)
        await began.passage()
        let mapped = original.mapResult { $0 + 1 }
        queue.addOperation(mapped)
        async let value = mapped.value
        release.open()
        #expect(try await value == 3)
        await mapped.ended()
        #expect(original.calls.events == ["main"])
    }

    @Test func `mappings can be chained, and running the last one runs the whole chain`() async throws {
        let last = ClosureOperation { 1 }.mapResult { $0 + 1 }.mapResult { $0 * 10 }.mapResult { "\($0)" }
        #expect(try await last.run() == "20")
    }

    @Test func `a mapped operation and its original are freed when they end`() {
        let census = LiveObjects()
        weak var original: HandDriven?
        do {
            let made = census.track(HandDriven())
            original = made
            let mapped = census.track(made.mapResult { $0 })
            mapped.startAndKeepAlive()
        }
        #expect(census.count == 2)
        original?.finish(withResult: 1)
        #expect(census.types == [])
        do {
            census.track(census.track(HandDriven()).mapResult { $0 }).cancel()
            _ = census.track(census.track(HandDriven()).mapResult { $0 })
        }
        #expect(census.types == [])
    }

    /// Returns a chain of mappings, which would overflow a small stack if each step called the next.
    private func row(_ length: Int, over original: AsyncOperation<Int, Flaw>) -> TypedOperation<Int, Flaw> {
        var last: TypedOperation<Int, Flaw> = original
        for _ in 0..<length { last = last.mapResult { $0 + 1 } }
        return last
    }

    private let smallStack = 512 << 10

    @Test func `a chain of 20,000 mappings runs and is freed on a small stack`() async throws {
        let length = 20_000
        let census = LiveObjects()
        let outcome = try await TestThread.run(stackSize: smallStack) {
            let last = row(length, over: census.track(HandDriven(hooks: .init(main: { $0.finish(withResult: 0) }))))
            last.start()
            return last.outcome
        }
        #expect(outcome == .success(length))
        try await TestThread.run(stackSize: smallStack) {
            withExtendedLifetime(row(length, over: census.track(HandDriven()))) {}
        }
        #expect(try await TestThread.run { census.countAtRest() } == 0)
    }

    @Test func `canceling a chain of 20,000 mappings reaches the original on a small stack`() async throws {
        let last = try await TestThread.run(stackSize: smallStack) {
            let last = row(20_000, over: original)
            last.start()
            last.cancel(because: .requested("enough"))
            return last
        }
        #expect(last.cancellationCause?.message == "enough")
        await original.ended()
        #expect(original.cancellationCause?.message == "enough")
    }
}
