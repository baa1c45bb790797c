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
