// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

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
