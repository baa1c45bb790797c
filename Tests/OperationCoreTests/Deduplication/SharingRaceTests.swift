// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Races of shared operations", .timeLimit(.minutes(Rounds.minutes)))
struct SharingRaceTests {
    @Test(
        "With concurrent starts, cancellations and ends, each asker ends once and only one run is active",
        arguments: [false, true])
    func askingCancellingEnding(windsDown: Bool) async throws {
        let rounds = Rounds.count(ci: 600, soak: 30_000)
        NoticeHub.install()
        let failure = try await TestThread.run { () -> String? in
            let team = ThreadTeam(count: 8)
            let census = LiveObjects()
            for round in 0..<rounds {
                if let failure = autoreleasing({ race(windsDown, team, census) }) {
                    return "round \(round): \(failure)"
                }
            }
            return census.countAtRest() == 0 ? nil : "alive: \(Set(census.types))"
        }
        #expect(failure == nil)
    }

    @Test func `the run is canceled when all askers are canceled concurrently`() async throws {
        let rounds = Rounds.count(ci: 2_000, soak: 50_000)
        NoticeHub.install()
        let failure = try await TestThread.run { () -> String? in
            let team = ThreadTeam(count: 8)
            for round in 0..<rounds {
                let flights = SharedOperations<Int, Int, Flaw>()
                let runs = Runs()
                let participants = (0..<8).map { _ in flights.operation(for: 0) { runs.make() } }
                team.run(
                    participants.map { participant in
                        {
                            participant.start()
                            participant.cancel()
                        }
                    })
                if let open = participants.first(where: { !$0.isFinished }) {
                    return "round \(round): asker \(open.state)"
                }
                for run in runs.all where !run.isFinished || run.cancellationCause?.code != .allAskersLeft {
                    return "round \(round): run \(run.state)"
                }
            }
            return nil
        }
        #expect(failure == nil)
    }
}

/// Plays one round, in which four threads start participants, two cancel participants and two end runs.
@available(*, noasync)
private func race(_ windsDown: Bool, _ team: ThreadTeam, _ census: LiveObjects) -> String? {
    let flights = census.track(SharedOperations<Int, Int, Flaw>())
    let runs = Runs(windsDown: windsDown, census: census)
    let told = Tally()
    let participants = (0..<24).map { _ in census.track(flights.operation(for: 0) { runs.make() }) }
    for participant in participants { participant.addObserverForTest { told.add() } }
    let ask = { (range: Range<Int>) in { @Sendable in for participant in participants[range] { participant.start() } } }
    let end = { @Sendable in
        for _ in 0..<6 { for (number, run) in runs.all.enumerated() { runs.conclude(run, with: .success(number)) } }
    }
    team.run([
        ask(0..<6), ask(6..<12), ask(12..<18), ask(18..<24),
        { for participant in participants[3..<15] { participant.cancel() } },
        { for participant in participants[9..<21].reversed() { participant.cancel() } },
        end, end,
    ])
    while let run = runs.all.first(where: { !$0.isFinished }) { runs.conclude(run, with: .success(99)) }
    for participant in participants { participant.waitUntilFinished() }
    if runs.active.peak > 1 { return "\(runs.active.peak) runs at once" }
    if told.value != participants.count { return "\(told.value) of \(participants.count) were notified" }
    runs.forget()
    return nil
}

extension ManagedOperation {
    fileprivate func addObserverForTest(_ note: @escaping @Sendable () -> Void) { whenEnded(note) }
}
