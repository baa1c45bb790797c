// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

private final class Piece {}

@Suite("Model of unique work", .timeLimit(.minutes(Rounds.minutes)))
struct UniqueWorkModelTests {
    @Test func `the table agrees with a list for each key after any arrivals and departures`() {
        for seed in Rounds.firstSeed..<Rounds.firstSeed + UInt64(Rounds.count(ci: 1_500, soak: 100_000)) {
            if let failure = run(seed) {
                Issue.record("seed \(seed): \(failure)")
                return
            }
        }
    }

    private func run(_ seed: UInt64) -> String? {
        var random = SeededGenerator(seed: seed)
        var table = UniqueWorkTable<Piece, Piece>()
        /// The operations of each key that have not ended, in their order, with their turns.
        var lines = [[Member]](repeating: [], count: 2)
        var decided: Set<ObjectIdentifier> = []
        for _ in 0..<60 {
            let index = Int.random(in: 0..<2, using: &random)
            let key = UniqueWorkKey(index)
            if random.chance(1, in: 2) {
                let policies = [UniqueWorkPolicy.keep, .replace, .append]
                let policy = policies[Int.random(in: 0..<3, using: &random)]
                let work = Piece(), turn = Piece()
                switch table.arrive(work, key, policy, turn: turn, decided: decided) {
                case .refused(let other):
                    guard policy == .keep, lines[index].contains(where: { $0.work === other }),
                        !decided.contains(ObjectIdentifier(other))
                    else { return "refused wrongly" }
                    continue
                case .runs: if !lines[index].isEmpty { return "runs beside others" }
                case .waits(let ahead, let others):
                    if ahead.work !== lines[index].last?.work { return "waits behind another" }
                    if ahead.turn !== lines[index].last?.openTurn { return "follows another turn" }
                    let all = lines[index].reversed().map { ObjectIdentifier($0.work) }
                    if others.map(ObjectIdentifier.init) != (policy == .replace ? all : []) { return "cancels others" }
                    if lines[index].isEmpty { return "waits for nothing" }
                    decided.formUnion(others.map(ObjectIdentifier.init))
                }
                let isBlocked = lines[index].contains { !decided.contains(ObjectIdentifier($0.work)) }
                if policy == .keep, isBlocked { return "not refused" }
                lines[index].append(Member(work: work, turn: turn, mayRun: lines[index].isEmpty))
            } else if let position = lines[index].indices.randomElement(using: &random) {
                let left = lines[index].remove(at: position)
                decided.remove(ObjectIdentifier(left.work))
                let departure = table.leave(left.work, key)
                if let failure = check(departure, left, position, lines[index]) { return failure }
                if position == 0, !lines[index].isEmpty { lines[index][0].mayRun = true }
            }
            if lines[index].dropFirst().contains(where: \.mayRun) { return "two may run" }
            if table.count != lines.count(where: { !$0.isEmpty }) { return "\(table.count) keys" }
            if table.storedCount != lines.reduce(0, { $0 + $1.count }) { return "\(table.storedCount) stored" }
            if table.takeTrash().count > 200 { return "trash" }
        }
        return nil
    }

    /// An operation in a line, which has not ended.
    private struct Member {
        let work: Piece
        let turn: Piece
        var mayRun: Bool

        var openTurn: Piece? { mayRun ? nil : turn }
    }

    /// Checks the departure of a member that was at the given position of the line.
    private func check(
        _ departure: UniqueWorkTable<Piece, Piece>.Departure, _ left: Member, _ position: Int, _ line: [Member]
    ) -> String? {
        let next = line.indices.contains(position) ? line[position] : nil
        switch departure {
        case .nothing: return next == nil ? nil : "no turn came"
        case .opens(let turn): return position == 0 && turn === next?.turn ? nil : "the wrong turn came"
        case .closesGap(let gone, let turn, let ahead):
            guard position > 0, gone === left.turn, turn === next?.turn else { return "the wrong one closed up" }
            let expected = line[position - 1]
            return ahead.work === expected.work && ahead.turn === expected.openTurn ? nil : "closed up behind another"
        }
    }

    @Test func `operations added concurrently with all policies run one at a time per key, and all end`() async throws {
        let rounds = Rounds.count(ci: 200, soak: 10_000)
        NoticeHub.install()
        let failure = try await TestThread.run { () -> String? in
            let team = ThreadTeam(count: 6)
            let census = LiveObjects()
            for round in 0..<rounds {
                if let failure = autoreleasing({ race(team, census) }) { return "round \(round): \(failure)" }
            }
            return census.countAtRest() == 0 ? nil : "alive: \(Set(census.types))"
        }
        #expect(failure == nil)
    }
}

/// Plays one round, in which five threads add operations and one thread cancels them.
@available(*, noasync)
private func race(_ team: ThreadTeam, _ census: LiveObjects) -> String? {
    let queue = QueueManager("unique race", width: 3)
    let active = [Tally(), Tally()]
    let operations = (0..<40).map { number in
        census.track(
            SyncProbe { operation in
                active[number % 2].add()
                active[number % 2].add(-1)
                operation.finish(withResult: number)
            })
    }
    let policies = [UniqueWorkPolicy.append, .replace, .append, .keep, .append]
    var bodies: [@Sendable () -> Void] = policies.enumerated().map { thread, policy in
        {
            for number in operations.indices where number % 5 == thread {
                _ = try? queue.addUnique(operations[number], key: number % 2, policy: policy)
            }
        }
    }
    bodies.append { for operation in operations where operation.isReady { operation.cancel() } }
    team.run(bodies)
    for operation in operations { operation.waitUntilFinished() }
    try? queue.waitUntilAllFinished()
    for tally in active where tally.peak > 1 { return "\(tally.peak) at once" }
    return nil
}
