// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Plays pieces of code that would run on several threads, one step at a time, in an order that is drawn from a seed.
///
/// A race that a test with real threads meets once in a million rounds is one order among a few hundred here. The same
/// seed gives the same order every time, so that a failure can be repeated and looked at:
///
/// ```swift
/// try Explorer.explore(rounds: 1_000) { explorer in
///     let operation = ClosureOperation { 42 }
///     explorer.add("start") { operation.start() }
///     explorer.add("cancel") { operation.cancel() }
///     explorer.run()
///     try explorer.expect(operation.outcome != nil, "The operation has no outcome.")
/// }
/// ```
///
/// What a step calls runs whole: interleaved are the steps, not the instructions within them. With ``ManualWorkers``
/// the threads of a queue are such steps, too, and with a ``ManualClock`` the passing of time.
public struct Explorer {
    /// For how many turns one goes on that nobody is to interrupt.
    ///
    /// He may wait for another one by asking again and
    /// again.
    private static let patience = 200

    /// One of those that take turns.
    private struct Actor {
        let name: String
        /// Does the next step; nil if there is none now, false if there never will be.
        let step: (inout SeededGenerator) -> Bool?
    }

    private var actors: [Actor] = []
    /// Chooses who takes the next turn, where the schedule does not say.
    private var chooser: SeededGenerator

    /// The schedule that is played.
    public let schedule: ExplorerSchedule

    /// Chance that belongs to the schedule: for what the world is like in which the actors take their steps.
    ///
    /// It gives the same numbers for the same seed, whatever the order. Steps that draw do so from it, too.
    public var random: SeededGenerator

    /// The names of the actors in the order in which they had their turns.
    public private(set) var order: [String] = []

    /// Which actor had its turn, by the order in which they were added.
    private(set) var turns: [Int] = []

    /// How many turns there may be: 100,000.
    ///
    /// A round in which nobody comes to an end by then fails, and says so: somebody waits, by asking again and again, for what
    /// never comes.
    public var turnLimit = 100_000

    /// Whether there were more.
    private(set) var isEndless = false

    /// How many turns one had without a break, behind those that the schedule says.
    private var stay = 0

    /// Makes an explorer that draws from `seed`.
    public init(seed: UInt64) {
        self.init(ExplorerSchedule(seed: seed))
    }

    /// Makes an explorer that plays a schedule.
    public init(_ schedule: ExplorerSchedule) {
        self.schedule = schedule
        chooser = SeededGenerator(seed: schedule.seed)
        random = SeededGenerator(seed: ~schedule.seed)
    }

    /// Adds an actor with these steps.
    public mutating func add(_ name: String, _ steps: (() -> Void)...) {
        var rest = steps[...]
        add(
            name,
            asking: { _ in
                guard let step = rest.popFirst() else { return false }
                step()
                return true
            })
    }

    /// Adds an actor that is asked for its next step again and again.
    ///
    /// - Parameters:
    ///   - name: What it is called in ``order``.
    ///   - step: Does a step and returns true; returns nil if it can do nothing now, and false if it is done for good.
    public mutating func add(_ name: String, asking step: @escaping (inout SeededGenerator) -> Bool?) {
        actors.append(Actor(name: name, step: step))
    }

    /// Lets the actors take turns until all are done or none can do anything; returns whether all are done.
    ///
    /// It goes on for no more than ``turnLimit`` turns.
    ///
    /// - Parameter afterEach: Called after each step, to look whether all is as it should be; false ends the run.
    @discardableResult
    public mutating func run(afterEach: () -> Bool = { true }) -> Bool {
        var idle: Set<Int> = []
        var present = Array(actors.indices)
        while idle.count < present.count {
            guard turns.count < max(turnLimit, 1) else {
                isEndless = true
                return false
            }
            let choices = present.filter { !idle.contains($0) }
            let index = choice(among: choices)
            switch actors[index].step(&random) {
            case true?:
                idle = []
                order.append(actors[index].name)
                note(index)
                if !afterEach() { return false }
            case false?: present.removeAll { $0 == index }
            case nil: idle.insert(index)
            }
        }
        return present.isEmpty
    }

    /// Ends a round of ``explore(rounds:from:_:)`` as failed, unless that is so.
    public func expect(_ isSo: Bool, _ message: @autoclosure () -> String) throws {
        if !isSo { throw ExplorerFlaw(description: message()) }
    }

    private mutating func note(_ actor: Int) {
        let isBehindEnd = schedule.turns.map { turns.count >= $0.count } ?? false
        stay = isBehindEnd && turns.last == actor ? stay + 1 : 0
        turns.append(actor)
    }

    /// Whose turn it is: as the schedule says, and behind its end whoever had the last one, for as long as he can.
    ///
    /// One who asks again and again for what another has to do is interrupted all the same, or he would go on for ever.
    private mutating func choice(among choices: [Int]) -> Int {
        guard let wanted = schedule.turns else { return choices[Int.random(in: 0..<choices.count, using: &chooser)] }
        let last = turns.last ?? -1
        let next = turns.count < wanted.count ? wanted[turns.count] : last
        if turns.count >= wanted.count, stay >= Self.patience {
            // All have their turn in time.
            return choices.first { $0 > last } ?? choices[0]
        }
        return choices.contains(next) ? next : choices[0]
    }
}

/// What a user's check found.
struct ExplorerFlaw: Error, CustomStringConvertible {
    let description: String
}

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

/// An order in which the actors of an ``Explorer`` take their turns: drawn from a seed, or said turn by turn.
///
/// It is what a failed exploration prints, and what is put in to play it again: `4711`, or with turns `4711:0,1,0`. A
/// turn is the number of an actor, by the order in which they were added; where that one can do nothing, the first
/// does that can.
public struct ExplorerSchedule: Hashable, Sendable {
    /// What everything is drawn from that is not said.
    public var seed: UInt64
    /// Whose turn it is, first to last; drawn from the seed if nil.
    ///
    /// Behind the last one nobody is interrupted who can go on, but for one who goes on for some hundred turns: he may
    /// wait for another.
    public var turns: [Int]?

    /// Makes a schedule.
    public init(seed: UInt64, turns: [Int]? = nil) {
        (self.seed, self.turns) = (seed, turns)
    }
}

extension ExplorerSchedule: LosslessStringConvertible, ExpressibleByStringLiteral {
    /// The schedule as it is printed.
    public var description: String {
        guard let turns else { return "\(seed)" }
        return "\(seed):\(turns.map(String.init).joined(separator: ","))"
    }

    /// Reads a schedule that was printed; nil if the text is none.
    public init?(_ description: String) {
        let parts = description.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, let seed = UInt64(first) else { return nil }
        guard parts.count == 2 else {
            self.init(seed: seed)
            return
        }
        let numbers = parts[1].split(separator: ",")
        let turns = numbers.compactMap { Int($0) }
        guard turns.count == numbers.count else { return nil }
        self.init(seed: seed, turns: turns)
    }

    /// Reads a schedule that was printed; a text that is none is a programmer's error.
    public init(stringLiteral text: String) {
        guard let schedule = Self(text) else {
            preconditionFailure("\"\(text)\" is no schedule. Put in what was printed, such as 4711 or 4711:0,1,0.")
        }
        self = schedule
    }
}

/// The schedule with which a round of an exploration failed, and the shortest way to the same failure that was found.
///
/// ```
/// The token of the last user is still there.
///   round 38 of 1000, with seed 37
///   order: load, sign out, load
///   to play this one again: Explorer.replay("37:0,1,0"), or OPERATIONKIT_SCHEDULE=37:0,1,0 in the environment
/// ```
public struct ExplorationFailure: Error, Sendable {
    /// What the round threw.
    public let reason: String
    /// In which round it was met first, from 1; 0 if none was played.
    public let round: Int
    /// How many rounds there were to be.
    public let rounds: Int
    /// The schedule that failed first: its seed.
    public let met: ExplorerSchedule
    /// The one with the fewest changes of turns that was found to fail, too.
    public let shortest: ExplorerSchedule
    /// The names of the actors in the order of the shortest one.
    public let order: [String]

    /// What stands in the environment is no schedule.
    static func noSchedule(_ text: String) -> ExplorationFailure {
        let none = ExplorerSchedule(seed: 0)
        return ExplorationFailure(
            reason:
                "\(Explorer.scheduleVariable) is \"\(text)\", which is no schedule: nothing was played. Put in what "
                + "was printed, such as 4711 or 4711:0,1,0, or nothing.",
            round: 0, rounds: 0, met: none, shortest: none, order: [])
    }
}

extension ExplorationFailure: CustomStringConvertible, LocalizedError {
    /// What failed, in which order, and how to play that again.
    public var description: String {
        if rounds == 0 { return reason }
        let isSame = shortest == met
        var lines = [
            reason, "  round \(round) of \(rounds), with seed \(met.seed)",
            "  order: \(order.isEmpty ? "nobody had a turn" : told)",
            "  to play this one again: Explorer.replay(\"\(shortest)\"), or "
                + "\(Explorer.scheduleVariable)=\(shortest) in the environment",
        ]
        if !isSame { lines.append("  as it was met first: \"\(met)\"") }
        return lines.joined(separator: "\n")
    }

    /// The order, with what one does many times in a row said once.
    private var told: String {
        var rows: [(name: String, count: Int)] = []
        for name in order {
            if rows.last?.name == name { rows[rows.count - 1].count += 1 } else { rows.append((name, 1)) }
        }
        let names = rows.flatMap { row in
            row.count > 5 ? ["\(row.name) (\(row.count) times)"] : Array(repeating: row.name, count: row.count)
        }
        return names.joined(separator: ", ")
    }

    /// What failed, in which order, and how to play that again.
    public var errorDescription: String? { description }
}
