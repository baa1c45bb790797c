// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The shell of ``UniqueWorkTable``, one for each queue.
package final class UniqueWork: Sendable {
    /// Ends when the operation that waits for it is the first of its line.
    private final class Turn: AsyncOperation<Void, Never>, @unchecked Sendable {
        // Sendable: it adds no state to its superclass.

        override func main() {}

        func come() {
            start()
            finish(withResult: ())
            // It may follow one that never ends, since the queue refused it. Once started, it is given no edge any more.
            for other in dependencies { removeEdges(to: other) }
        }

        /// Nobody needs it any more.
        func giveUp() {
            cancelIfUndecided(because: .requested)
            startIfNeeded()
        }

        /// Shows what it waits for, so that a cycle through it is seen; what opens it is the table.
        func follow(_ other: ManagedOperation) {
            // One that has come needs to wait for nothing.
            _ = try? DependencyGraph.connect(self, to: other, judge: nil)
        }
    }

    private typealias Table = UniqueWorkTable<ManagedOperation, Turn>

    private let table = Locked(Table())

    package init() {}

    /// How many keys are in use.
    package var count: Int { table.withLock { $0.count } }

    /// How many operations are held; for tests.
    package var storedCount: Int { table.withLock { $0.storedCount } }

    /// Adds an operation by way of `add`; returns whether it is to run.
    func add(
        _ added: ManagedOperation, _ key: UniqueWorkKey, _ policy: UniqueWorkPolicy, queue: String,
        by add: () throws(QueueError) -> Void
    ) throws(QueueError) -> Bool {
        // A mapped operation may be freed before its original has ended.
        let operation = added.life
        // One that the queue will refuse replaces nobody.
        guard operation.isUnused else {
            try add()
            return false
        }
        let decided = policy == .keep ? apply { $0.present(key) }.filter(\.hasOutcome) : []
        let turn = Turn()
        turn.name = "earlier work with the same key"
        let arrival = withExtendedLifetime(decided) {
            apply { $0.arrive(operation, key, policy, turn: turn, decided: Set(decided.map(ObjectIdentifier.init))) }
        }
        var replaced: [ManagedOperation] = []
        switch arrival {
        case .refused(let other):
            // It ends in the queue if there is room, so that it counts there; a queue that has none still says no.
            added.cancelIfUndecided(because: .alreadyPresent(other.displayName, queue: queue))
            do throws(QueueError) {
                try add()
            } catch {
                if error.code != .full { throw error }
                added.start()
            }
            return false
        case .waits(let ahead, let others):
            replaced = others
            // Those that will be cancelled wait for nothing then.
            let upstream = policy == .replace ? others.filter(\.hasOutcome) : [ahead.work]
            let turnAhead = policy == .replace ? nil : ahead.turn
            for other in upstream { follow(other, turnAhead, key, with: turn) }
            do throws(DependencyError) {
                try operation.connect(to: turn, judge: nil)
            } catch {
                // One that was started just now is refused by the queue.
                if error.code == .cycle {
                    leave(operation, key)
                    throw .cycle(operation.displayName, queue: queue, behind: ahead.work.displayName, error)
                }
            }
        case .runs: break
        }
        do {
            try add()
        } catch {
            operation.removeEdges(to: turn)
            leave(operation, key)
            throw error
        }
        operation.whenEnded { [weak self, weak operation] in
            if let operation { self?.leave(operation, key) }
        }
        let cause = CancellationCause.replaced(operation.displayName, queue: queue)
        for other in replaced { other.cancelIfUndecided(because: cause) }
        return true
    }

    private func leave(_ operation: ManagedOperation, _ key: UniqueWorkKey) {
        switch apply({ $0.leave(operation, key) }) {
        case .nothing: break
        case .opens(let turn): turn.come()
        case .closesUp(let left, let next, let ahead):
            // The new edges before the old ones go, so that a cycle is seen at every moment.
            follow(ahead.work, ahead.turn, key, with: next)
            next.removeEdges(to: operation)
            next.removeEdges(to: left)
            // Another thread may be about to let the next one follow it.
            left.giveUp()
        }
    }

    /// Lets a turn follow one of the line, and the turn of that one.
    private func follow(
        _ other: ManagedOperation, _ otherTurn: Turn?, _ key: UniqueWorkKey, with turn: Turn
    ) {
        turn.follow(other)
        if let otherTurn { turn.follow(otherTurn) }
        // Refused by the queue just before, it left when there was no edge yet to take back, and may never end.
        guard !apply({ $0.holds(other, key) }) else { return }
        turn.removeEdges(to: other)
        if let otherTurn { turn.removeEdges(to: otherTurn) }
    }

    private func apply<Action>(_ event: (inout Table) -> Action) -> Action {
        let (action, trash) = table.withLock { table in (event(&table), table.takeTrash()) }
        withExtendedLifetime(trash) {}
        return action
    }
}

extension ManagedOperation {
    /// Whether neither a queue of this package nor a start by hand has taken the operation.
    final var isUnused: Bool {
        core.withLock { $0.host == nil && !$0.isStartUnderWay && !$0.machine.isFinished }
    }

    final var hasOutcome: Bool { core.withLock { $0.machine.ending != nil } }
}

/// What becomes of an operation and of those that are present with the same key: see
/// ``QueueManager/addUnique(_:key:policy:)``.
///
/// Present are those that were added with the key and have not ended.
public struct UniqueWorkPolicy: Sendable, Hashable, CustomStringConvertible {
    enum Kind: String { case keep, replace, append }

    let kind: Kind

    /// The present one stays; the new one is cancelled with the cause `alreadyPresent`.
    ///
    /// If those that are present were all cancelled and only wind down, the new one runs after them.
    public static let keep = Self(kind: .keep)
    /// Those that are present are cancelled with the cause `replaced`; the new one runs after they ended.
    public static let replace = Self(kind: .replace)
    /// The new one runs after all that are present ended, however they end.
    public static let append = Self(kind: .append)

    /// The name of the policy.
    public var description: String { kind.rawValue }
}

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

extension QueueManager {
    /// Adds an operation of which only one with the same key is to run at a time in this queue.
    ///
    /// ```swift
    /// let queue = QueueManager("sync")
    /// let upload = ClosureOperation { print("uploading") }
    /// try queue.addUnique(upload, key: "upload", policy: .keep)
    /// ```
    ///
    /// What becomes of those that are present with the key, and of this one, is up to the policy, whatever the policies
    /// were with which they came.
    ///
    /// - Parameters:
    ///   - operation: A new operation.
    ///   - key: Any hashable value; counts in this queue only. Its `==` and `hash(into:)` are called under a lock, so they
    ///     must do nothing but compare and hash.
    ///   - policy: Who gives way to whom.
    /// - Returns: False if the operation was cancelled, and ended, because another one is present and is kept.
    /// - Throws: As `add` does; with the code `cycle` if one that is present, and stays, waits for the operation.
    @discardableResult
    public func addUnique(
        _ operation: ManagedOperation, key: some Hashable & Sendable, policy: UniqueWorkPolicy
    ) throws(QueueError) -> Bool {
        try engine.uniqueWork.add(operation, UniqueWorkKey(key), policy, queue: engine.name) { () throws(QueueError) in
            try add(operation)
        }
    }

    /// The same as soon as there is room; what becomes of those that are present is decided then.
    ///
    /// - Returns: False if the operation was cancelled, and ended, because another one is present and is kept.
    /// - Throws: As ``addUnique(_:key:policy:)`` does; with the code `cancelled` if the task is cancelled while it waits.
    @discardableResult
    public func addUniqueWhenThereIsRoom(
        _ operation: ManagedOperation, key: some Hashable & Sendable, policy: UniqueWorkPolicy
    ) async throws(QueueError) -> Bool {
        let key = UniqueWorkKey(key)
        return try await engine.whenThereIsRoom(for: 1, toAdd: operation.displayName) { hasPlace throws(QueueError) in
            var isPlaceLeft = hasPlace
            defer { if isPlaceLeft { engine.giveBackPlaces(1) } }
            return try engine.uniqueWork.add(operation, key, policy, queue: engine.name) { () throws(QueueError) in
                isPlaceLeft = false
                try engine.add(operation, hasPlace: hasPlace)
            }
        }
    }
}
