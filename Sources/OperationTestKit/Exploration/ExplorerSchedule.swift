// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

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
