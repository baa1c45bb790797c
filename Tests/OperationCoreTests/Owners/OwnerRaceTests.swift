// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Races between owners", .timeLimit(.minutes(Rounds.minutes)))
struct OwnerRaceTests {
    @Test
    func `each operation is either counted as canceled once or succeeds despite concurrent changes`() async throws {
        let rounds = Rounds.count(ci: 400, soak: 20_000)
        let failure = try await TestThread.run { () -> String? in
            let team = ThreadTeam(count: 8)
            let census = LiveObjects()
            for round in 0..<rounds {
                if let failure = autoreleasing({ race(round, team, census) }) { return failure }
            }
            return census.countAtRest() == 0 ? nil : "alive: \(census.types.count)"
        }
        #expect(failure == nil)
    }

    @Test func `if an owner is freed while operations start, none of its operations stays running`() async throws {
        let rounds = Rounds.count(ci: 2_000, soak: 100_000)
        let failure = try await TestThread.run { () -> String? in
            let team = ThreadTeam(count: 8)
            for round in 0..<rounds {
                let screen = Locked<TidyScreen?>(TidyScreen())
                let operations = (0..<7).map { _ in HandDriven() }
                team.run(
                    operations.map { operation -> @Sendable () -> Void in
                        {
                            operation.owner = screen.withLock { $0 }.map { .object($0) } ?? "owner race: none"
                            operation.start()
                        }
                    } + [
                        {
                            let last = screen.withLock { screen in
                                defer { screen = nil }
                                return screen
                            }
                            withExtendedLifetime(last) {}
                        }
                    ])
                // Every operation with this owner got it before the owner's deinit ran.
                for operation in operations where operation.owner != "owner race: none" && !operation.isCancelled {
                    return "round \(round): \(operation.state)"
                }
                for operation in operations { operation.finish(withResult: 1) }
            }
            return nil
        }
        #expect(failure == nil)
    }
}

/// One round: three threads assign operations to two owners, two finish operations, and three cancel.
@available(*, noasync)
private func race(_ round: Int, _ team: ThreadTeam, _ census: LiveObjects) -> String? {
    NoticeHub.install()
    let name = OperationOwner.named("owner race \(round)")
    let screen = Screen()
    let operations = (0..<60).map { _ in census.track(HandDriven()) }
    let cancelled = Tally()
    for operation in operations.prefix(30) {
        operation.owner = name
        operation.start()
    }
    team.run([
        { for operation in operations[30..<50] { operation.owner = .object(screen) } },
        { for operation in operations[40..<60].reversed() { operation.owner = name } },
        { for operation in operations[10..<40] { operation.owner = .object(screen) } },
        { for operation in operations[0..<20] { operation.finish(withResult: 1) } },
        {
            for operation in operations[20..<60] {
                operation.startAndFinish(withResult: 2)
            }
        },
        { for _ in 0..<5 { cancelled.add(OperationOwner.cancelOperations(ownedBy: name)) } },
        { for _ in 0..<5 { cancelled.add(OperationOwner.cancelOperations(ownedBy: screen)) } },
        { for _ in 0..<5 { cancelled.add(OperationOwner.cancelOperations(ownedBy: name)) } },
    ])
    if let open = operations.first(where: { !$0.isFinished }) { return "round \(round): \(open.state) at the end" }
    let count = operations.count(where: \.isCancelled)
    if count != cancelled.value { return "round \(round): \(count) are canceled, but \(cancelled.value) were notified" }
    let left = OperationOwner.cancelOperations(ownedBy: name) + OperationOwner.cancelOperations(ownedBy: screen)
    return left == 0 ? nil : "round \(round): \(left) left behind"
}
