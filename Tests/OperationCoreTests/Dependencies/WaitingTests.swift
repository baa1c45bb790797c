// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(Rounds.minutes)))
struct WaitingTests {
    @Test func `an operation does not begin on the thread that ended its dependency`() async throws {
        let upstream = HandDriven(), began = Gate()
        let ranInside = try await TestThread.run {
            let here = ThreadMark(), isSame = Locked(false)
            let downstream = HandDriven(
                hooks: .init(main: { operation in
                    isSame.withLock { $0 = here.isCurrent }
                    operation.finish(withResult: 1)
                    began.open()
                }))
            try downstream.depend(on: upstream, otherwise: .runAnyway)
            downstream.start()
            UpstreamEnd.succeeds.perform(on: upstream)
            began.wait()
            return isSame.withLock { $0 }
        }
        #expect(!ranInside)
    }

    @Test func `an operation canceled while it waits is not started by the end of its dependency`() throws {
        let upstream = HandDriven(), downstream = HandDriven(), last = HandDriven()
        try downstream.depend(on: upstream, otherwise: .runAnyway)
        try last.depend(on: downstream, otherwise: .runAnyway)
        downstream.cancel()
        // The operation was not started, and its dependents wait for the start.
        #expect(Look(downstream) == .cancelledEarly)
        #expect(!last.isReady)
        downstream.start()
        #expect(Look(downstream) == .cancelled)
        #expect(last.isReady)
        UpstreamEnd.succeeds.perform(on: upstream)
        #expect(downstream.calls.events == [])
    }

    @Test func `a dependency canceled before its start delays its dependents until it is started`() throws {
        let upstream = HandDriven(), plain = HandDriven(), strict = HandDriven()
        try plain.depend(on: upstream, otherwise: .runAnyway)
        try strict.depend(on: upstream, otherwise: .cancel)
        upstream.cancel()
        #expect(!plain.isReady)
        #expect(!strict.isCancelled)
        upstream.start()
        #expect(Look(plain) == .waiting)
        #expect(strict.cancellationCause?.code == .dependencyCancelled)
    }

    @Test func `a dependency finished before its start delays its dependents until it is started`() throws {
        let upstream = HandDriven(), downstream = HandDriven()
        try downstream.depend(on: upstream, otherwise: .runAnyway)
        upstream.finish(withResult: 1)
        #expect(!downstream.isReady)
        upstream.start()
        #expect(downstream.isReady)
    }

    @Test func `a dependency that winds down delays its dependents until it ends`() throws {
        let upstream = HandDriven(windsDown: true), downstream = HandDriven()
        try downstream.depend(on: upstream, otherwise: .cancel)
        upstream.start()
        upstream.cancel()
        #expect(!downstream.isReady)
        #expect(!downstream.isCancelled)
        upstream.finish(withResult: 1)
        #expect(downstream.cancellationCause?.code == .dependencyCancelled)
    }

    @Test(arguments: [true, false])
    func `a diamond of dependencies runs from top to bottom`(startsAtTheTop: Bool) async throws {
        let order = EventRecorder<String>()
        func make(_ name: String) -> SyncProbe {
            SyncProbe.recording(name, in: order)
        }
        let top = make("top"), left = make("left"), right = make("right"), bottom = make("bottom")
        try left.depend(on: top, otherwise: .cancel)
        try right.depend(on: top, otherwise: .cancel)
        try bottom.depend(on: left, otherwise: .cancel)
        try bottom.depend(on: right, otherwise: .cancel)
        let all = [top, left, right, bottom]
        for operation in startsAtTheTop ? all : all.reversed() { operation.start() }
        _ = try await bottom.value
        #expect(order.events.first == "top")
        #expect(order.events.last == "bottom")
        #expect(Set(order.events) == ["top", "left", "right", "bottom"])
        #expect(order.count == 4)
    }

    @Test func `an operation with 50 dependencies is ready only when all of them have ended`() throws {
        let sources = (0..<50).map { _ in HandDriven() }, operation = HandDriven()
        for source in sources { try operation.depend(on: source, otherwise: .runAnyway) }
        for (number, source) in sources.shuffled().enumerated() {
            #expect(!operation.isReady, "after \(number) of 50")
            UpstreamEnd.allCases[number % 3].perform(on: source)
        }
        #expect(operation.isReady)
    }

    @Test func `a dependent keeps its dependency alive, but not the reverse`() throws {
        let census = LiveObjects()
        weak var upstream: HandDriven?
        do {
            let downstream = HandDriven(), made = census.track(HandDriven())
            try downstream.depend(on: made, otherwise: .runAnyway)
            upstream = made
            withExtendedLifetime(downstream) { #expect(census.count == 1) }
        }
        #expect(upstream == nil)
        let last = HandDriven()
        do { try census.track(HandDriven()).depend(on: last, otherwise: .cancel) }
        #expect(census.count == 0)
        UpstreamEnd.succeeds.perform(on: last)
    }

    @Test func `an operation becomes ready although edges are added while its dependencies end`() async throws {
        let rounds = Rounds.count(ci: 2_000, soak: 100_000)
        let stuck = try await TestThread.run { () -> Int in
            let team = ThreadTeam(count: 4)
            return (0..<rounds).count { _ in
                let first = HandDriven(), second = HandDriven(), downstream = HandDriven()
                team.run([
                    { UpstreamEnd.succeeds.perform(on: first) },
                    { UpstreamEnd.succeeds.perform(on: second) },
                    { try? downstream.depend(on: first, otherwise: .cancel) },
                    {
                        downstream.addDependency(second)
                        downstream.removeDependency(second)
                        downstream.addDependency(second)
                    },
                ])
                return Look(downstream) != .waiting
            }
        }
        #expect(stuck == 0)
    }
}
