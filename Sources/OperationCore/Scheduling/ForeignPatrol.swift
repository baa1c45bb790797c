// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Which operations of other kinds are asked next whether they are ready: a few at a time, each in its turn.
///
/// Those of which nothing is known that they wait for stand in a line of their own: so they are asked often, however many
/// wait for others.
struct ForeignPatrol {
    /// Where an operation stands.
    enum Line {
        /// Nothing is known that it waits for: when it is ready, only it can tell.
        case due
        /// It waits for others, and is told when they ended; it may be cancelled or lose a dependency without a word.
        case behind
    }

    /// Whether the next round is on its way.
    var isSet = false

    private var due = Fifo<ForeignEntry>()
    private var behind = Fifo<ForeignEntry>()

    /// How many of each line are asked at most at a time.
    static let most = 500

    var isEmpty: Bool { due.isEmpty && behind.isEmpty }

    /// Adds an operation, or moves it to the line where it belongs by now.
    mutating func add(_ entry: ForeignEntry) {
        let line = entry.isBehind ? Line.behind : .due
        guard entry.line.withLock({ exchange(&$0, with: line) }) != line else { return }
        append(entry, line)
    }

    private mutating func append(_ entry: ForeignEntry, _ line: Line) {
        switch line {
        case .due: due.append(entry)
        case .behind: behind.append(entry)
        }
    }

    /// Those that are to be asked now, and others that were in a line and wait no more, to be let go of.
    mutating func takeTurn(_ isWaiting: (ForeignEntry) -> Bool) -> (asked: [ForeignEntry], gone: [ForeignEntry]) {
        var asked: [ForeignEntry] = [], gone: [ForeignEntry] = []
        for line in [Line.due, .behind] {
            for _ in 0..<min(line == .due ? due.count : behind.count, Self.most) {
                guard let entry = line == .due ? due.popFirst() : behind.popFirst() else { break }
                // It stands in the other line by now, or in none.
                guard entry.line.withLock({ $0 == line }), isWaiting(entry) else {
                    entry.line.withLock { if $0 == line { $0 = nil } }
                    gone.append(entry)
                    continue
                }
                append(entry, line)
                asked.append(entry)
            }
        }
        return (asked, gone)
    }
}
