// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct MainQueueOperationTests {
    private let main = MarkedQueue(.main)

    @Test func `the closure of a MainQueueOperation runs on the main queue wherever it is started`() async throws {
        let main = main
        let operation = MainQueueOperation { main.isCurrent }
        #expect(try await operation.run())
        let other = MainQueueOperation { main.isCurrent }
        OperationQueue().addOperation(other)
        #expect(try await other.value)
    }

    @Test func `a MainQueueOperation started on the main thread runs immediately`() async {
        let order = EventRecorder<String>()
        await MainActor.run {
            let operation = MainQueueOperation { order.record("body") }
            operation.start()
            order.record("\(operation.state)")
        }
        #expect(order.events == ["body", "finished"])
    }

    @Test func `a MainQueueOperation has typed errors, and CancellationError cancels it`() async {
        let failing: MainQueueOperation<Int, Flaw> = MainQueueOperation { () throws(Flaw) in throw .first }
        failing.start()
        #expect(await failing.finalOutcome == .failure(.first))
        let cancelled = MainQueueOperation { () throws -> Int in throw CancellationError() }
        cancelled.start()
        #expect(await cancelled.finalOutcome.cancellationCause == .bodyCancelled)
    }

    @Test func `a MainQueueOperation canceled before its turn does not run and releases its closure`() async throws {
        let census = LiveObjects(), ran = EventRecorder<Int>(), held = Gate(), release = Gate()
        DispatchQueue.main.async {
            held.open()
            release.wait()
        }
        await held.passage()
        let isFreed = try await TestThread.run {
            let operation: MainQueueOperation<Void, Never>
            do {
                let object = census.track(Witness())
                operation = MainQueueOperation { withExtendedLifetime(object) { ran.record(1) } }
            }
            operation.start()
            operation.cancel()
            return operation.isFinished && census.count == 0
        }
        release.open()
        #expect(isFreed)
        #expect(await ran.events(after: DispatchQueue.main) == [])
    }

    @Test func `another thread can wait for a MainQueueOperation`() async throws {
        let main = main
        #expect(try await TestThread.run { try MainQueueOperation { main.isCurrent }.startAndWait() })
    }

    @Test func `a MainQueueOperation supports dependencies and handlers`() async throws {
        let queue = DispatchQueue(label: "handlers"), order = EventRecorder<String>()
        let first = ClosureOperation { "a" }, shown = EventRecorder<String>()
        let show = MainQueueOperation { shown.record("shown") }
        let last = ClosureOperation { 1 }
        try show.depend(on: first, otherwise: .runAnyway)
        try last.depend(on: show, otherwise: .runAnyway)
        show.callbackQueue = queue
        last.callbackQueue = queue
        show.successHandler = { _ in order.record("show") }
        last.successHandler = { _ in order.record("last") }
        let plain = OperationQueue()
        for operation in [last, show, first] as [Operation] { plain.addOperation(operation) }
        #expect(await order.events(atLeast: 2) == ["show", "last"])
        #expect(shown.events == ["shown"])
    }

    @Test func `MainQueueOperations started from several threads all run on the main queue`() async throws {
        let main = main, places = EventRecorder<Bool>()
        try await TestThread.run {
            let team = ThreadTeam(count: 4)
            let start: @Sendable () -> Void = {
                let operation = MainQueueOperation { places.record(main.isCurrent) }
                operation.startAndKeepAlive()
            }
            for _ in 0..<100 { team.run([start, start, start, start]) }
        }
        #expect(await places.events(atLeast: 400).allSatisfy { $0 })
        #expect(places.count == 400)
    }
}
