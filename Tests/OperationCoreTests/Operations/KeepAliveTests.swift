// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct KeepAliveTests {
    private let census = LiveObjects()

    @Test(arguments: [false, true])
    func `startAndKeepAlive keeps an operation alive until it ends, also while it winds down`(windsDown: Bool) {
        weak var weakly: HandDriven?
        do {
            let operation = census.track(HandDriven(windsDown: windsDown))
            operation.startAndKeepAlive()
            if windsDown { operation.cancel() }
            weakly = operation
        }
        #expect(census.count == 1)
        weakly?.finish(withResult: 1)
        #expect(census.count == 0)
    }

    @Test func `an operation started with startAndKeepAlive is freed after a cancellation or an early result`() {
        weak var weakly: HandDriven?
        do {
            let operation = census.track(HandDriven())
            operation.startAndKeepAlive()
            weakly = operation
        }
        weakly?.cancel()
        #expect(census.count == 0)
        do {
            let cancelled = census.track(HandDriven()), kept = census.track(HandDriven())
            cancelled.cancel()
            cancelled.startAndKeepAlive()
            kept.finish(withResult: 1)
            kept.startAndKeepAlive()
            kept.startAndKeepAlive()
            #expect(kept.isFinished)
        }
        #expect(census.count == 0)
    }

    @Test func `startAndKeepAlive keeps an operation alive during its dependencies and start delay`() async throws {
        let clock = HookClock(), upstream = HandDriven(), ran = EventRecorder<Int>()
        let isDelayed = Gate(), gone = Gate()
        clock.afterNextSchedule { isDelayed.open() }
        do {
            let operation = census.track(ClosureOperation { ran.record(1) })
            operation.completionBlock = { [witness = Witness(gone)] in withExtendedLifetime(witness) {} }
            operation.clock = clock
            operation.startDelay = .seconds(1)
            try operation.depend(on: upstream, otherwise: .runAnyway)
            operation.startAndKeepAlive()
        }
        #expect(census.count == 1)
        upstream.startAndFinish(withResult: 1)
        await isDelayed.passage()
        #expect(census.count == 1)
        clock.manual.advance(by: .seconds(1))
        await gone.passage()
        #expect(ran.events == [1])
    }

    @Test func `a synchronous operation started with startAndKeepAlive is freed when it returns`() {
        census.track(SyncProbe { $0.finish(withResult: 1) }).startAndKeepAlive()
        #expect(census.count == 0)
    }

    @Test func `an operation that was never started is freed with everything that it holds`() throws {
        let clock = ManualClock(), upstream = HandDriven()
        do {
            let object = census.track(Witness())
            let operation = census.track(ClosureOperation<Witness, Never> { object })
            operation.successHandler = { _ in _ = object }
            operation.cancellationHandler = { _ in _ = object }
            operation.completionBlock = { _ = object }
            operation.observe { _ in _ = object }
            operation.clock = clock
            operation.deadline = OperationInstant(offset: .seconds(9))
            operation.timeout = .seconds(1)
            operation.startDelay = .seconds(1)
            let own = census.track(HandDriven())
            try operation.depend(on: own, otherwise: .cancel)
            try operation.receive(from: own, otherwise: .cancel) { _, _ in _ = object }
            try operation.depend(on: upstream, otherwise: .runAnyway)
            operation.addDependency(census.track(BlockOperation { _ = object }) as Operation)
            let dependent = census.track(HandDriven())
            try dependent.depend(on: operation, otherwise: .runAnyway)
            #expect(census.count == 5)
        }
        #expect(census.types == [])
        #expect(clock.pendingCount == 0)
        upstream.startAndFinish(withResult: 1)
    }

    @Test func `a finished operation holds neither its dependencies nor its handlers`() async throws {
        let queue = DispatchQueue(label: "handlers"), operation = HandDriven()
        do {
            let upstream = census.track(ClosureOperation { 1 }), object = census.track(Witness())
            try operation.depend(on: upstream, otherwise: .runAnyway)
            operation.callbackQueue = queue
            operation.successHandler = { _ in _ = object }
            operation.failureHandler = { _ in _ = object }
            upstream.start()
        }
        operation.startAndFinish(withResult: 1)
        await queue.drain()
        #expect(census.count == 0)
        #expect(operation.dependencies == [])
    }
}
