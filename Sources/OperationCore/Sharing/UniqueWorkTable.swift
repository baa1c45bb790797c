// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Which operations of a queue have which key, as a value: for each key a line of which the first may run.
///
/// It knows nothing of locks. What falls out of it goes to the trash, to be let go of outside the lock.
package struct UniqueWorkTable<Work: AnyObject, Turn: AnyObject> {
    /// One of a line, and what it waits for, unless it is the first.
    package struct Member {
        package let work: Work
        package let turn: Turn?
    }

    private struct Place {
        let work: Work
        var turn: Turn?
        /// Its neighbours, so that it can leave the middle of the line.
        var before: Int?
        var after: Int?

        var member: Member { Member(work: work, turn: turn) }
    }

    private struct Line {
        var places: [Int: Place] = [:]
        var numbers: [ObjectIdentifier: Int] = [:]
        var first: Int?
        var last: Int?
    }

    private var lines: [UniqueWorkKey: Line] = [:]
    private var lastNumber = 0
    private var trash: [Any] = []

    package init() {}

    /// How many keys are in use.
    package var count: Int { lines.count }

    /// How many operations it holds; for tests.
    package var storedCount: Int { lines.values.reduce(0) { $0 + $1.places.count } }

    /// What fell out since this was asked last.
    package mutating func takeTrash() -> [Any] { trash.isEmpty ? [] : exchange(&trash, with: []) }

    /// Those with a key that have not ended, the last one first.
    package func present(_ key: UniqueWorkKey) -> [Work] {
        lines[key]?.places.sorted { $0.key > $1.key }.map(\.value.work) ?? []
    }

    /// Whether that one is among them.
    package func holds(_ work: Work, _ key: UniqueWorkKey) -> Bool {
        lines[key]?.numbers[ObjectIdentifier(work)] != nil
    }

    package enum Arrival {
        /// It is the first of its line.
        case runs
        /// It must wait for its turn, which comes after the end of this one; those are to be cancelled, in that order.
        case waits(behind: Member, cancelling: [Work])
        /// It is to be cancelled, because this one is present.
        case refused(Work)
    }

    /// An operation comes.
    ///
    /// - Parameters:
    ///   - turn: What it will wait for if it is not the first.
    ///   - decided: Those that are present and have an outcome, so that nothing is to be expected of them. Only asked
    ///     for where one that is present is kept.
    package mutating func arrive(
        _ work: Work, _ key: UniqueWorkKey, _ policy: UniqueWorkPolicy, turn: Turn, decided: Set<ObjectIdentifier> = []
    ) -> Arrival {
        if policy == .keep,
            let other = lines[key]?.places.values.first(where: { !decided.contains(ObjectIdentifier($0.work)) })
        {
            return .refused(other.work)
        }
        // The last first: were the first cancelled first, the next would begin for a moment.
        let others = policy == .replace ? present(key) : []
        lastNumber += 1
        if lines[key] == nil { lines[key] = Line() }
        let last = lines[key]?.last
        let ahead = last.flatMap { lines[key]?.places[$0]?.member }
        lines[key]?.places[lastNumber] = Place(work: work, turn: ahead == nil ? nil : turn, before: last)
        lines[key]?.numbers[ObjectIdentifier(work)] = lastNumber
        lines[key]?.last = lastNumber
        guard let last, let ahead else {
            lines[key]?.first = lastNumber
            return .runs
        }
        lines[key]?.places[last]?.after = lastNumber
        return .waits(behind: ahead, cancelling: others)
    }

    package enum Departure {
        /// Nobody waits for anything else than before.
        case nothing
        /// The turn of the one that is first now has come.
        case opens(Turn)
        /// It left the middle with its own turn: this turn comes after the end of that member now.
        case closesUp(left: Turn, next: Turn, behind: Member)
    }

    /// An operation ended, or is not to wait in line after all.
    package mutating func leave(_ work: Work, _ key: UniqueWorkKey) -> Departure {
        guard let number = lines[key]?.numbers.removeValue(forKey: ObjectIdentifier(work)),
            let place = lines[key]?.places.removeValue(forKey: number)
        else { return .nothing }
        trash.append(place)
        if let before = place.before { lines[key]?.places[before]?.after = place.after }
        if let after = place.after { lines[key]?.places[after]?.before = place.before }
        if lines[key]?.last == number { lines[key]?.last = place.before }
        if lines[key]?.first == number { lines[key]?.first = place.after }
        guard let after = place.after else {
            if place.before == nil, let index = lines.index(forKey: key) { trash.append(lines.remove(at: index)) }
            return .nothing
        }
        guard let next = lines[key]?.places[after]?.turn else { return .nothing }
        guard let before = place.before, let left = place.turn, let behind = lines[key]?.places[before]?.member else {
            lines[key]?.places[after]?.turn = nil
            return .opens(next)
        }
        return .closesUp(left: left, next: next, behind: behind)
    }
}

/// The key of an operation in its queue.
package struct UniqueWorkKey: Hashable, @unchecked Sendable {
    // Sendable: it is made of a value that is.

    private let value: AnyHashable

    package init(_ value: some Hashable & Sendable) { self.value = AnyHashable(value) }
}
