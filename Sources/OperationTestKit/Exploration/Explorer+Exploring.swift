// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

extension Explorer {
    /// The variable of the environment that has every exploration play one schedule and no other.
    ///
    /// `OPERATIONKIT_SCHEDULE=37:0,1,0 swift test --filter signOut`
    ///
    /// Where it says something that is no schedule, each exploration fails and says so.
    public static let scheduleVariable = "OPERATIONKIT_SCHEDULE"

    /// How many schedules are tried to find a shorter one that fails.
    private static let triesToShorten = 500

    /// Plays many schedules of the same scene, each drawn from a seed of its own, until one fails.
    ///
    /// The scene is made anew in each round: operations, queues and clocks of its own, and an explorer to which it
    /// adds its actors and which it lets run. A round fails if the scene throws: from ``expect(_:_:)``, from the
    /// expectations of operations (``UnmetExpectation``), or anything. The schedule that failed is then made as short
    /// as can be found in some hundred tries, and thrown as an ``ExplorationFailure``, which says how to play it
    /// again. A shorter one counts only if it fails in the same way: with an error of the same type, and the same
    /// text but for words with digits in them.
    ///
    /// ```swift
    /// import OperationCore
    /// import OperationTestKit
    ///
    /// func cancelledInAnyMoment() throws {
    ///     try Explorer.explore(rounds: 1_000) { explorer in
    ///         let workers = ManualWorkers()
    ///         let queue = workers.makeQueue(width: 1)
    ///         let first = ClosureOperation { 1 }, second = ClosureOperation { 2 }
    ///         second.addDependency(first)
    ///         explorer.add("add", { try? queue.add(second) }, { try? queue.add(first) })
    ///         explorer.add("cancel") { first.cancel() }
    ///         explorer.add("work") { _ in workers.step() ? true : nil }
    ///         explorer.run()
    ///         try explorer.expect(second.isFinished, "The second one waits for ever.")
    ///     }
    /// }
    /// ```
    ///
    /// The scene must depend on nothing but the explorer: what threads of their own do is in no schedule. Checks that
    /// write a failure down and go on (`#expect`, `XCTAssert`) are not seen here; throw.
    ///
    /// - Parameters:
    ///   - rounds: How many schedules are played.
    ///   - first: The first seed; the others follow it. Say another one to see other schedules.
    ///   - scene: Makes the scene and plays it.
    public static func explore(
        rounds: Int, from first: UInt64 = 0, _ scene: (inout Explorer) throws -> Void
    ) throws(ExplorationFailure) {
        try explore(rounds: rounds, from: first, said: ProcessInfo.processInfo.environment[scheduleVariable], scene)
    }

    /// The same with what the environment says.
    package static func explore(
        rounds: Int, from first: UInt64 = 0, said text: String?, _ scene: (inout Explorer) throws -> Void
    ) throws(ExplorationFailure) {
        if let text, !text.isEmpty {
            guard let schedule = ExplorerSchedule(text) else { throw .noSchedule(text) }
            return try replay(schedule, scene)
        }
        for round in 0..<max(rounds, 0) {
            let played = play(ExplorerSchedule(seed: first &+ UInt64(round)), scene)
            guard let reason = played.reason else { continue }
            // One that does not end is not played some hundred times more.
            let shortest = played.isEndless ? played : shorten(played, scene)
            throw ExplorationFailure(
                reason: shortest.reason ?? reason, round: round + 1, rounds: rounds, met: played.schedule,
                shortest: shortest.schedule, order: shortest.order)
        }
    }

    /// Plays one schedule again: the one that an ``ExplorationFailure`` printed.
    public static func replay(
        _ schedule: ExplorerSchedule, _ scene: (inout Explorer) throws -> Void
    ) throws(ExplorationFailure) {
        let played = play(schedule, scene)
        guard let reason = played.reason else { return }
        throw ExplorationFailure(
            reason: reason, round: 1, rounds: 1, met: schedule, shortest: schedule, order: played.order)
    }

    /// What came of a schedule.
    private struct Played {
        var schedule: ExplorerSchedule
        /// Why it failed; nil if it did not.
        var reason: String?
        /// What it has in common with the same failure in another order; nil if it did not fail.
        var kind: String?
        var order: [String]
        var turns: [Int]
        /// Whether nobody came to an end.
        var isEndless = false
    }

    /// So many turns of a round without an end are told.
    private static let toldTurns = 50

    private static func play(_ schedule: ExplorerSchedule, _ scene: (inout Explorer) throws -> Void) -> Played {
        var explorer = Explorer(schedule)
        var (reason, kind): (String?, String?)
        do {
            try scene(&explorer)
        } catch {
            let text = "\(error)"
            (reason, kind) = (text, "\(type(of: error)): \(withoutNumbers(text))")
        }
        // Whatever the scene found then, it looked before the end.
        if explorer.isEndless {
            let last = Array(explorer.order.suffix(toldTurns))
            reason =
                "Nobody came to an end in \(explorer.turns.count) turns: somebody asks again and again for what never "
                + "comes. These are the last \(last.count) of them. A scene that needs more sets its explorer's turnLimit."
            return Played(
                schedule: schedule, reason: reason, kind: "endless", order: last, turns: explorer.turns, isEndless: true
            )
        }
        return Played(schedule: schedule, reason: reason, kind: kind, order: explorer.order, turns: explorer.turns)
    }

    /// The words of a text in which there are no digits: counts, lines and addresses may be other ones.
    private static func withoutNumbers(_ text: String) -> String {
        let words = text.split { !$0.isLetter && !$0.isNumber }
        return words.filter { word in !word.contains { $0.isNumber } }.joined(separator: " ")
    }

    /// A schedule that fails in the same way, in which fewer actors are interrupted by others, or fewer turns must be
    /// said.
    private static func shorten(_ played: Played, _ scene: (inout Explorer) throws -> Void) -> Played {
        var (best, said, tries) = (played, played.turns, 0)
        // Takes these turns if they fail in the same way, and are calmer or fewer.
        func take(_ turns: [Int]) -> Bool {
            guard tries < triesToShorten else { return false }
            tries += 1
            let other = play(ExplorerSchedule(seed: played.schedule.seed, turns: turns), scene)
            let isCalmer = (changes(other.turns), turns.count) < (changes(best.turns), said.count)
            guard other.kind == played.kind, isCalmer else { return false }
            (best, said) = (other, turns)
            return true
        }
        // Who has nothing to do with it comes last.
        for actor in Set(said).sorted(by: >) { _ = take(said.filter { $0 != actor }) }
        // The fewest turns that must be said, so that what comes behind them is not interrupted any more.
        var (least, most) = (0, said.count)
        while least < most {
            let middle = (least + most) / 2
            if take(Array(said.prefix(middle))) { most = middle } else { least = middle + 1 }
        }
        // One turn less, or taken by whoever had the one before, as long as that helps.
        var isBetter = true
        while isBetter, tries < triesToShorten {
            isBetter = false
            for index in said.indices.reversed() where index < said.count {
                var (fewer, calmer) = (said, said)
                fewer.remove(at: index)
                if index > 0 { calmer[index] = said[index - 1] }
                if take(fewer) || index > 0 && calmer != said && take(calmer) { isBetter = true }
            }
        }
        return best
    }

    /// How often another actor has the turn than before.
    private static func changes(_ turns: [Int]) -> Int {
        zip(turns, turns.dropFirst()).count { $0 != $1 }
    }
}
