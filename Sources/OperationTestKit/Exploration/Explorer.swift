// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A simulation that runs the steps of several actors on one thread, in an order that a seed determines.
///
/// In this type, an actor is a named series of steps, such as the calls that one thread makes. These actors are not
/// Swift actors. A simulation can often reproduce a race condition that rarely occurs with real threads. To run a
/// simulation repeatedly, each time in a different order, call `explore`:
///
/// ```swift
/// try Explorer.explore(rounds: 1_000) { explorer in
///     let operation = ClosureOperation { 42 }
///     explorer.add("start") { operation.start() }
///     explorer.add("cancel") { operation.cancel() }
///     explorer.run()
///     try explorer.expect(
///         operation.outcome != nil, "The operation has no outcome.")
/// }
/// ```
///
/// The same seed always produces the same order, so you can reproduce a failure. The explorer interleaves whole steps,
/// not the instructions within a step. To simulate the threads of a queue, add an actor that calls
/// ``ManualWorkers/step(_:)``. To simulate the passage of time, add an actor that advances a ``ManualClock``.
public struct Explorer {
    /// The number of turns after which an actor is interrupted although the schedule does not require it.
    ///
    /// The actor may be polling for an event that another actor causes.
    private static let patience = 200

    /// The actors, which take turns.
    ///
    /// `step` performs the next step, and returns nil if there is none now, and false if the actor is finished.
    private var actors: [(name: String, step: (inout SeededGenerator) -> Bool?)] = []
    /// The generator that chooses the next actor where the schedule has no turns.
    private var chooser: SeededGenerator

    /// The schedule that determines the order of the steps.
    package let schedule: ExplorerSchedule

    /// A random number generator whose numbers depend only on the seed of the schedule.
    ///
    /// Use this generator for all random decisions in the closure that you pass to ``explore(rounds:from:_:)``,
    /// including decisions in steps.
    public var random: SeededGenerator

    /// The names of the actors that performed the steps, in the order of the steps.
    package private(set) var order: [String] = []

    /// The actors in the order of their turns, as indices in the order in which they were added.
    private(set) var turns: [Int] = []

    /// The maximum number of steps that all actors together can perform in a round.
    ///
    /// The default is 100,000. If the actors need more steps, the round fails. A common cause is an actor that polls
    /// indefinitely for an event that never occurs.
    public var turnLimit = 100_000

    /// Whether the maximum number of turns was exceeded.
    private(set) var isEndless = false

    /// The number of consecutive turns of one actor after the end of the schedule.
    private var stay = 0

    /// Creates an explorer that derives the order of the steps from a seed.
    package init(seed: UInt64) {
        self.init(ExplorerSchedule(seed: seed))
    }

    /// Creates an explorer that follows a schedule.
    package init(_ schedule: ExplorerSchedule) {
        self.schedule = schedule
        chooser = SeededGenerator(seed: schedule.seed)
        random = SeededGenerator(seed: ~schedule.seed)
    }

    /// Adds an actor that performs the given steps in order.
    ///
    /// - Parameters:
    ///   - name: The name of the actor in the ``ExplorationFailure/order`` of a failure.
    ///   - steps: The closures that perform the steps of the actor. The explorer calls the closures on the thread that
    ///     calls ``run(afterEach:)``.
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

    /// Adds an actor that calls a closure for each of its steps.
    ///
    /// - Parameters:
    ///   - name: The name of the actor in the ``ExplorationFailure/order`` of a failure.
    ///   - step: A closure that receives ``random`` and performs the next step. The closure returns `true` after a
    ///     step, `nil` if no step is currently possible, and `false` if the actor has finished.
    public mutating func add(_ name: String, asking step: @escaping (inout SeededGenerator) -> Bool?) {
        actors.append((name, step))
    }

    /// Runs the actors' steps until all actors have finished or no actor can perform a step.
    ///
    /// The method returns after at most ``turnLimit`` steps.
    ///
    /// - Parameter afterEach: A closure that the method calls after each step. If the closure returns `false`, the
    ///   method returns. The default closure always returns `true`.
    /// - Returns: A Boolean value that indicates whether all actors have finished.
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

    /// Throws an error if a condition is false, so that the current round of an exploration fails.
    ///
    /// - Parameters:
    ///   - isSo: The condition to check.
    ///   - message: The text of the error, which the method evaluates only if the condition is false.
    /// - Throws: An error that contains the message, if `isSo` is `false`.
    public func expect(_ isSo: Bool, _ message: @autoclosure () -> String) throws {
        if !isSo { throw ExplorerFlaw(description: message()) }
    }

    private mutating func note(_ actor: Int) {
        let isBehindEnd = schedule.turns.map { turns.count >= $0.count } ?? false
        stay = isBehindEnd && turns.last == actor ? stay + 1 : 0
        turns.append(actor)
    }

    /// Returns the actor of the next turn.
    ///
    /// The actor is the next one in the schedule. After the end of the schedule, the last actor continues for as long
    /// as it can. An actor that polls for an event is interrupted after some time, because it would continue forever.
    private mutating func choice(among choices: [Int]) -> Int {
        guard let wanted = schedule.turns else { return choices[Int.random(in: 0..<choices.count, using: &chooser)] }
        let last = turns.last ?? -1
        let next = turns.count < wanted.count ? wanted[turns.count] : last
        if turns.count >= wanted.count, stay >= Self.patience {
            // Give each actor a turn eventually.
            return choices.first { $0 > last } ?? choices[0]
        }
        return choices.contains(next) ? next : choices[0]
    }
}

/// The error of a failed check.
struct ExplorerFlaw: Error, CustomStringConvertible {
    let description: String
}

extension Explorer {
    /// The name of the environment variable that limits each exploration to one schedule.
    ///
    /// For example, run `OPERATIONKIT_SCHEDULE=37:0,1,0 swift test --filter signOut`. If the value is not a valid
    /// schedule, each exploration fails.
    package static let scheduleVariable = "OPERATIONKIT_SCHEDULE"

    /// The maximum number of schedules to try while shortening a failure.
    private static let triesToShorten = 500

    /// Runs a scenario repeatedly, each time with a different schedule, until a round fails.
    ///
    /// In each round, the `scene` closure creates new operations, queues and clocks, adds actors to the explorer, and
    /// runs the actors. A round fails if this closure throws an error, for example from ``expect(_:_:)`` or from a
    /// method that throws an ``UnmetExpectation``.
    ///
    /// After a failure, the method tries up to 500 schedules to find one with fewer switches between actors. The method
    /// then throws an ``ExplorationFailure`` with the simplest schedule that fails in the same way as the original
    /// schedule. Two rounds fail in the same way if their errors have the same type and the same text, apart from words
    /// that contain digits.
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
    ///         explorer.add(
    ///             "add", { try? queue.add(second) }, { try? queue.add(first) })
    ///         explorer.add("cancel") { first.cancel() }
    ///         explorer.add("work") { _ in workers.step() ? true : nil }
    ///         explorer.run()
    ///         try explorer.expect(
    ///             second.isFinished, "The second operation never finished.")
    ///     }
    /// }
    /// ```
    ///
    /// The scenario must not start threads, because the schedule does not control them. If a check fails, throw an
    /// error. Checks that record a failure and continue, such as `#expect` and `XCTAssert`, do not make a round fail.
    ///
    /// - Parameters:
    ///   - rounds: The maximum number of rounds, each with its own schedule.
    ///   - first: The seed of the first round. The seed of each later round is greater by one. The default is 0. To run
    ///     other schedules, choose another seed.
    ///   - scene: A closure that sets up the scenario and runs its actors. The method calls the closure on the current
    ///     thread.
    /// - Throws: An ``ExplorationFailure`` if a round fails.
    public static func explore(
        rounds: Int, from first: UInt64 = 0, _ scene: (inout Explorer) throws -> Void
    ) throws(ExplorationFailure) {
        try explore(rounds: rounds, from: first, said: ProcessInfo.processInfo.environment[scheduleVariable], scene)
    }

    /// Explores with the given value of the environment variable.
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
            // A scene that does not end is too slow to play some hundred times more.
            let shortest = played.isEndless ? played : shorten(played, scene)
            throw ExplorationFailure(
                reason: shortest.reason ?? reason, round: round + 1, rounds: rounds, met: played.schedule,
                shortest: shortest.schedule, order: shortest.order)
        }
    }

    /// Runs a scenario once with a given schedule, for example with the schedule from an ``ExplorationFailure``.
    ///
    /// - Parameters:
    ///   - schedule: The order of the actors' turns.
    ///   - scene: A closure that sets up the scenario and runs its actors. The method calls the closure on the current
    ///     thread.
    /// - Throws: An ``ExplorationFailure`` if the round fails.
    public static func replay(
        _ schedule: ExplorerSchedule, _ scene: (inout Explorer) throws -> Void
    ) throws(ExplorationFailure) {
        let played = play(schedule, scene)
        guard let reason = played.reason else { return }
        throw ExplorationFailure(
            reason: reason, round: 1, rounds: 1, met: schedule, shortest: schedule, order: played.order)
    }

    /// The result of a schedule.
    private struct Played {
        var schedule: ExplorerSchedule
        /// The reason of the failure, or nil without a failure.
        var reason: String?
        /// The common property of the same failure in different orders, or nil without a failure.
        var kind: String?
        var order: [String]
        var turns: [Int]
        /// Whether the maximum number of turns was exceeded.
        var isEndless = false
    }

    /// The number of turns to report for a round without an end.
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
        // The scene checked its state before the actors had finished, so its own error does not count.
        if explorer.isEndless {
            let last = Array(explorer.order.suffix(toldTurns))
            reason =
                "The scenario did not end within \(explorer.turns.count) turns. An actor probably waits for an event "
                + "that never occurs. These are the last \(last.count) turns. If the scenario needs more turns, raise "
                + "the turnLimit of its explorer."
            return Played(
                schedule: schedule, reason: reason, kind: "endless", order: last, turns: explorer.turns, isEndless: true
            )
        }
        return Played(schedule: schedule, reason: reason, kind: kind, order: explorer.order, turns: explorer.turns)
    }

    /// Returns the words of a string without digits, because counts, lines and addresses may differ.
    private static func withoutNumbers(_ text: String) -> String {
        let words = text.split { !$0.isLetter && !$0.isNumber }
        return words.filter { word in !word.contains { $0.isNumber } }.joined(separator: " ")
    }

    /// Returns a schedule that fails in the same way as a round, with fewer interruptions or fewer explicit turns.
    private static func shorten(_ played: Played, _ scene: (inout Explorer) throws -> Void) -> Played {
        var (best, said, tries) = (played, played.turns, 0)
        // Accepts turns that fail in the same way, if they have fewer interruptions or are fewer.
        func take(_ turns: [Int]) -> Bool {
            guard tries < triesToShorten else { return false }
            tries += 1
            let other = play(ExplorerSchedule(seed: played.schedule.seed, turns: turns), scene)
            let isCalmer = (changes(other.turns), turns.count) < (changes(best.turns), said.count)
            guard other.kind == played.kind, isCalmer else { return false }
            (best, said) = (other, turns)
            return true
        }
        // Remove actors that are not involved in the failure.
        for actor in Set(said).sorted(by: >) { _ = take(said.filter { $0 != actor }) }
        // Find the smallest number of explicit turns, after which no actor is interrupted.
        var (least, most) = (0, said.count)
        while least < most {
            let middle = (least + most) / 2
            if take(Array(said.prefix(middle))) { most = middle } else { least = middle + 1 }
        }
        // Remove single turns or give them to the preceding actor, as long as the result improves.
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

    /// Returns the number of changes from one actor to another.
    private static func changes(_ turns: [Int]) -> Int {
        zip(turns, turns.dropFirst()).count { $0 != $1 }
    }
}

/// A schedule that determines which actor of an ``Explorer`` performs each step.
///
/// A schedule contains a seed and, optionally, a list of turns. The error of a failed exploration contains a schedule,
/// such as `4711` or `4711:0,1,0`. To reproduce the failure, pass the schedule to ``Explorer/replay(_:_:)``.
///
/// Each turn is the index of an actor, in the order in which the scenario adds the actors. If the actor cannot perform
/// a step, the turn goes to the first actor that can.
public struct ExplorerSchedule: Hashable, Sendable {
    /// The seed for all random decisions.
    package var seed: UInt64
    /// The indices of the actors in the order of their turns, or `nil` if the seed determines the order.
    ///
    /// After the last turn in the array, the same actor continues for as long as it can perform steps. After 200
    /// consecutive steps, the explorer switches to another actor, because the current actor might be waiting for that
    /// actor.
    package var turns: [Int]?

    /// Creates a schedule from a seed and a list of turns.
    ///
    /// If the list is `nil`, which is the default, the seed determines the order of the turns.
    package init(seed: UInt64, turns: [Int]? = nil) {
        (self.seed, self.turns) = (seed, turns)
    }
}

extension ExplorerSchedule: CustomStringConvertible, ExpressibleByStringLiteral {
    /// The printed form of the schedule, such as `4711` or `4711:0,1,0`.
    public var description: String {
        guard let turns else { return "\(seed)" }
        return "\(seed):\(turns.map(String.init).joined(separator: ","))"
    }

    /// Creates a schedule from its printed form, or returns `nil` if the text is not a valid schedule.
    package init?(_ description: String) {
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

    /// Creates a schedule from a string literal that contains its printed form.
    ///
    /// If the literal is not a valid schedule, the program stops.
    public init(stringLiteral text: String) {
        guard let schedule = Self(text) else {
            preconditionFailure("\"\(text)\" is not a schedule. Use a printed schedule, such as 4711 or 4711:0,1,0.")
        }
        self = schedule
    }
}

/// An error that describes a failed round of an exploration and contains a short schedule that reproduces the failure.
///
/// ```
/// The token of the last user is still there.
///   round 38 of 1000, with seed 37
///   order: load, sign out, load
///   to replay it: Explorer.replay("37:0,1,0"), or OPERATIONKIT_SCHEDULE=…
/// ```
public struct ExplorationFailure: Error, Sendable {
    /// The text of the error that made the round fail.
    public let reason: String
    /// The number of the failed round, starting at 1, or 0 if ``Explorer/scheduleVariable`` contains an invalid
    /// schedule.
    package let round: Int
    /// The maximum number of rounds in the exploration.
    package let rounds: Int
    /// The schedule of the round that failed.
    package let met: ExplorerSchedule
    /// The schedule with the fewest switches between actors, of the schedules that the explorer tried and that failed
    /// in the same way as the original schedule.
    public let shortest: ExplorerSchedule
    /// The names of the actors that performed the steps of the shortest schedule, in order.
    ///
    /// If the round exceeded ``Explorer/turnLimit``, the array contains only the last 50 names.
    public let order: [String]

    /// Returns the error for an invalid environment variable.
    static func noSchedule(_ text: String) -> ExplorationFailure {
        let none = ExplorerSchedule(seed: 0)
        return ExplorationFailure(
            reason:
                "\(Explorer.scheduleVariable) is \"\(text)\", which is not a schedule, so no round was played. "
                + "Set it to a printed schedule, such as 4711 or 4711:0,1,0, or remove it.",
            round: 0, rounds: 0, met: none, shortest: none, order: [])
    }
}

extension ExplorationFailure: CustomStringConvertible, LocalizedError {
    /// A description of the failure, with the order of the actors and the schedule that reproduces the failure.
    public var description: String {
        if rounds == 0 { return reason }
        let isSame = shortest == met
        var lines = [
            reason, "  round \(round) of \(rounds), with seed \(met.seed)",
            "  order: \(order.isEmpty ? "no actor had a turn" : summary)",
            "  to replay it: Explorer.replay(\"\(shortest)\"), or "
                + "\(Explorer.scheduleVariable)=\(shortest) in the environment",
        ]
        if !isSame { lines.append("  first failing schedule: \"\(met)\"") }
        return lines.joined(separator: "\n")
    }

    /// The order, with consecutive turns of one actor combined.
    private var summary: String {
        var rows: [(name: String, count: Int)] = []
        for name in order {
            if rows.last?.name == name { rows[rows.count - 1].count += 1 } else { rows.append((name, 1)) }
        }
        let names = rows.flatMap { row in
            row.count > 5 ? ["\(row.name) (\(row.count) times)"] : Array(repeating: row.name, count: row.count)
        }
        return names.joined(separator: ", ")
    }

    /// A description of the failure, which is equal to ``description``.
    public var errorDescription: String? { description }
}
