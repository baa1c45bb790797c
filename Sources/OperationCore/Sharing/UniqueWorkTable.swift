// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Which operations of a queue have which key, as a value: for each key a line of which the first may run.
///
/// It knows nothing of locks. What falls out of it goes to the trash, to be let go of outside the lock.
package struct UniqueWorkTable<Work: AnyObject, Turn: AnyObject> {
    private struct Place {
        let work: Work
        /// What it waits for, unless it was the first when it came.
        var turn: Turn?
    }

    private struct Line {
        /// In the order in which they came, some of which may have ended.
        var order = Fifo<Int>()
        var places: [Int: Place] = [:]
        var numbers: [ObjectIdentifier: Int] = [:]
        /// The first of those that have not ended.
        var first: Int?
    }

    private var lines: [UniqueWorkKey: Line] = [:]
    private var lastNumber = 0
    private var trash: [Any] = []

    package init() {}

    /// How many keys are in use.
    package var count: Int { lines.count }

    /// What fell out since this was asked last.
    package mutating func takeTrash() -> [Any] { trash.isEmpty ? [] : exchange(&trash, with: []) }

    /// Those with a key that have not ended, the last one first.
    package func present(_ key: UniqueWorkKey) -> [Work] {
        lines[key]?.places.sorted { $0.key > $1.key }.map(\.value.work) ?? []
    }

    package enum Arrival {
        /// It is the first of its line.
        case runs
        /// It must wait for its turn; these are to be cancelled, in this order.
        case waits(cancelling: [Work])
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
        let isFirst = lines[key]?.first == nil
        lastNumber += 1
        lines[key, default: Line()].places[lastNumber] = Place(work: work, turn: isFirst ? nil : turn)
        lines[key]?.numbers[ObjectIdentifier(work)] = lastNumber
        if isFirst { lines[key]?.first = lastNumber } else { lines[key]?.order.append(lastNumber) }
        return isFirst ? .runs : .waits(cancelling: others)
    }

    /// An operation ended; returns the turn of the one that is first now.
    package mutating func leave(_ work: Work, _ key: UniqueWorkKey) -> Turn? {
        guard let number = lines[key]?.numbers.removeValue(forKey: ObjectIdentifier(work)),
            let place = lines[key]?.places.removeValue(forKey: number)
        else { return nil }
        trash.append(place)
        guard lines[key]?.first == number else { return nil }
        lines[key]?.first = nil
        while let next = lines[key]?.order.popFirst() {
            guard let turn = lines[key]?.places[next]?.turn else { continue }
            lines[key]?.places[next]?.turn = nil
            lines[key]?.first = next
            return turn
        }
        if let index = lines.index(forKey: key) { trash.append(lines.remove(at: index)) }
        return nil
    }
}

/// The key of an operation in its queue.
package struct UniqueWorkKey: Hashable, @unchecked Sendable {
    // Sendable: it is made of a value that is.

    private let value: AnyHashable

    package init(_ value: some Hashable & Sendable) { self.value = AnyHashable(value) }
}
