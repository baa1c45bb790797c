// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Plays pieces of code that would run on several threads, one step at a time, in an order that is drawn from a seed.
///
/// A race that a test with real threads meets once in a million rounds is one order among a few hundred here. The same
/// seed gives the same order every time, so that a failure can be repeated and looked at:
///
/// ```swift
/// for seed in 0..<1_000 {
///     let operation = ClosureOperation { 42 }
///     var explorer = Explorer(seed: seed)
///     explorer.add("start") { operation.start() }
///     explorer.add("cancel") { operation.cancel() }
///     explorer.run()
///     assert(operation.outcome != nil, "seed \(seed): \(explorer.order)")
/// }
/// ```
///
/// What a step calls runs whole: interleaved are the steps, not the instructions within them. With ``ManualWorkers`` the
/// threads of a queue are such steps, too.
public struct Explorer {
    /// One of those that take turns.
    private struct Actor {
        let name: String
        /// Does the next step; nil if there is none now, false if there never will be.
        let step: (inout SeededGenerator) -> Bool?
    }

    private var actors: [Actor] = []
    private var generator: SeededGenerator

    /// The names of the actors in the order in which they had their turns.
    public private(set) var order: [String] = []

    /// Makes an explorer that draws from `seed`.
    public init(seed: UInt64) {
        generator = SeededGenerator(seed: seed)
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
    /// - Parameter afterEach: Called after each step, to look whether all is as it should be; false ends the run.
    @discardableResult
    public mutating func run(afterEach: () -> Bool = { true }) -> Bool {
        var idle: Set<Int> = []
        var present = Array(actors.indices)
        while idle.count < present.count {
            let choices = present.filter { !idle.contains($0) }
            let index = choices[Int.random(in: 0..<choices.count, using: &generator)]
            switch actors[index].step(&generator) {
            case true?:
                idle = []
                order.append(actors[index].name)
                if !afterEach() { return false }
            case false?: present.removeAll { $0 == index }
            case nil: idle.insert(index)
            }
        }
        return present.isEmpty
    }
}
