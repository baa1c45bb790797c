// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

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
