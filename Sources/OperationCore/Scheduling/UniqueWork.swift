// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The shell of ``UniqueWorkTable``, one for each queue.
package final class UniqueWork: Sendable {
    /// An operation that ends when the operation that waits for it is the first of its line.
    private final class Turn: AsyncOperation<Void, Never>, @unchecked Sendable {
        // Sendable: it adds no state to its superclass.

        override func main() {}

        func come() {
            start()
            finish(withResult: ())
            // The turn may follow an operation that never ends, because the queue refused it. A started turn gets no
            // more edges.
            for other in dependencies { removeEdges(to: other) }
        }

        /// Ends a turn that no operation needs any more.
        func giveUp() {
            cancelIfUndecided(because: .requested)
            startIfNeeded()
        }

        /// Adds a dependency, so that a cycle through the turn is detected, although the table decides when the turn
        /// comes.
        func follow(_ other: ManagedOperation) {
            // A turn that has come needs to wait for nothing.
            _ = try? DependencyInsertion.connect(self, to: other, judge: nil)
        }
    }

    private typealias Table = UniqueWorkTable<ManagedOperation, Turn>

    private let table = Locked(Table())

    package init() {}

    /// The number of keys in use.
    package var count: Int { table.withLock { $0.count } }

    /// The number of operations in the table, for tests.
    package var storedCount: Int { table.withLock { $0.storedCount } }

    /// Adds an operation with the closure `add`, and returns whether it is to run.
    ///
    /// The closure receives the epoch of the queue that is reserved for the operation, or `nil` if none is.
    func add(
        _ added: ManagedOperation, _ key: UniqueWorkKey, _ policy: UniqueWorkPolicy, to queue: QueueEngine,
        by add: (_ epoch: UInt32?) throws(OperationSetupError) -> Void
    ) throws(OperationSetupError) -> Bool {
        // A mapped operation may be freed before its original has ended.
        let operation = added.life
        // An operation that the queue will refuse replaces no other one.
        guard operation.isUnused else {
            try add(nil)
            return false
        }
        let decided = policy == .keep ? apply { $0.present(key) }.filter(\.hasOutcome) : []
        let turn = Turn()
        turn.name = "earlier work with the same key"
        let ignored = Set(decided.map(ObjectIdentifier.init))
        // One step decides the order in the line and in the queue. Otherwise, a barrier could come between two
        // operations, of which the first one in the queue waits for the other one.
        let (arrival, epoch) = queue.apply { state, _ -> (Table.Arrival, UInt32?) in
            let arrival = table.withLock { $0.arrive(operation, key, policy, turn: turn, decided: ignored) }
            if case .refused = arrival { return (arrival, nil) }
            return (arrival, state.machine.reserve(1, joinsFront: false))
        }
        extendLifetime(decided)
        func withdraw() {
            leave(operation, key)
            if let epoch { queue.apply { state, _ in state.machine.leaveEpoch(epoch) } }
        }
        var replaced: [ManagedOperation] = []
        switch arrival {
        case .refused(let other):
            // The operation ends in the queue if there is room, so that it counts there. Otherwise it ends outside.
            added.cancelIfUndecided(because: .alreadyPresent(other.displayName, queue: queue.name))
            do throws(OperationSetupError) {
                try add(nil)
            } catch {
                if error.code != .full { throw error }
                added.start()
            }
            return false
        case .waits(let ahead, let others):
            replaced = others
            // The others are about to be canceled, and will wait for nothing then.
            let upstream = policy == .replace ? others.filter(\.hasOutcome) : [ahead.work]
            let turnAhead = policy == .replace ? nil : ahead.turn
            for other in upstream { follow(other, turnAhead, key, with: turn) }
            do throws(OperationSetupError) {
                try operation.connect(to: turn, judge: nil)
            } catch {
                // An operation that was started just now is refused by the queue.
                if error.code == .cycle {
                    withdraw()
                    throw .cycle(operation.displayName, queue: queue.name, behind: ahead.work.displayName, error)
                }
            }
        case .runs: break
        }
        do {
            try add(epoch)
        } catch {
            operation.removeEdges(to: turn)
            withdraw()
            throw error
        }
        operation.whenEnded { [weak self, weak operation] in
            if let operation { self?.leave(operation, key) }
        }
        let cause = CancellationCause.replaced(operation.displayName, queue: queue.name)
        for other in replaced { other.cancelIfUndecided(because: cause) }
        return true
    }

    /// Returns the earlier operations for which a turn among the dependencies of an operation stands, or only the
    /// dependency if it is no turn.
    func operations(behind dependency: Operation, of operation: Operation) -> [Operation] {
        guard dependency.originalOrSelf is Turn, let operation = operation as? ManagedOperation else {
            return [dependency]
        }
        return apply { $0.ahead(of: operation.life) }
    }

    private func leave(_ operation: ManagedOperation, _ key: UniqueWorkKey) {
        switch apply({ $0.leave(operation, key) }) {
        case .nothing: break
        case .opens(let turn): turn.come()
        case .closesGap(let left, let next, let ahead):
            // The new edges come before the old ones are removed, so that a cycle is detected at every moment.
            follow(ahead.work, ahead.turn, key, with: next)
            next.removeEdges(to: operation)
            next.removeEdges(to: left)
            // Another thread may be about to make the next turn follow this one.
            left.giveUp()
        }
    }

    /// Makes a turn follow an operation of the line, and the turn of that operation.
    private func follow(
        _ other: ManagedOperation, _ otherTurn: Turn?, _ key: UniqueWorkKey, with turn: Turn
    ) {
        turn.follow(other)
        if let otherTurn { turn.follow(otherTurn) }
        // If the queue refused the operation just before, it left when there was no edge to remove, and may never end.
        guard !apply({ $0.holds(other, key) }) else { return }
        turn.removeEdges(to: other)
        if let otherTurn { turn.removeEdges(to: otherTurn) }
    }

    private func apply<Action>(_ event: (inout Table) -> Action) -> Action {
        let (action, trash) = table.withLock { table in (event(&table), table.takeTrash()) }
        extendLifetime(trash)
        return action
    }
}

extension ManagedOperation {
    /// Whether the operation was neither started nor added to a queue of this package or to a group.
    final var isUnused: Bool {
        core.withLock { core in
            core.host == nil && core.parent == nil && !core.machine.isStartUnderWay && !core.machine.isFinished
        }
    }

    /// Whether the operation has an outcome.
    package final var hasOutcome: Bool { core.withLock { $0.machine.ending != nil } }
}

/// A policy that determines which operations run if several operations in a queue have the same key.
///
/// An *existing operation* is an operation that was added with the key and has not ended. See
/// ``QueueManager/addUnique(_:key:policy:)``.
public struct UniqueWorkPolicy: Sendable, Hashable, CustomStringConvertible {
    private let name: String

    /// The queue keeps the existing operation and cancels the new operation with the cause `alreadyPresent`.
    ///
    /// If all existing operations have an outcome but have not ended yet, the new operation runs after they end.
    public static let keep = Self(name: "keep")
    /// The queue cancels the existing operations with the cause `replaced` and runs the new operation after they have
    /// ended.
    public static let replace = Self(name: "replace")
    /// The queue runs the new operation after all existing operations have ended, regardless of their outcomes.
    public static let append = Self(name: "append")

    /// The name of the policy.
    public var description: String { name }
}

/// The operations of a queue by their keys, as a value, with a line for each key of which the first operation may run.
///
/// The table uses no locks. Removed values go to the trash, and the caller releases them without holding the lock.
package struct UniqueWorkTable<Work: AnyObject, Turn: AnyObject> {
    /// An operation in a line, and the turn for which it waits unless it is the first.
    package struct Member {
        package let work: Work
        package let turn: Turn?
    }

    private struct Place {
        let work: Work
        var turn: Turn?
        /// The neighbors, so that the operation can leave the middle of the line.
        var before: Int?
        var after: Int?

        var member: Member { Member(work: work, turn: turn) }
    }

    private struct Line {
        var places: [Int: Place] = [:]
        var numbers: [ObjectIdentifier: Int] = [:]
        var last: Int?
    }

    private var lines: [UniqueWorkKey: Line] = [:]
    private var lastNumber = 0
    private var trash: [Any] = []

    package init() {}

    /// The number of keys in use.
    package var count: Int { lines.count }

    /// The number of operations in the table, for tests.
    package var storedCount: Int { lines.values.reduce(0) { $0 + $1.places.count } }

    /// Takes out the values that were removed since the last call.
    package mutating func takeTrash() -> [Any] { trash.isEmpty ? [] : exchange(&trash, with: []) }

    /// Returns the operations with a key that have not ended, the last one first.
    package func present(_ key: UniqueWorkKey) -> [Work] {
        lines[key]?.places.sorted { $0.key > $1.key }.map(\.value.work) ?? []
    }

    /// Returns the operations before an operation in its line, the first one first.
    package func ahead(of work: Work) -> [Work] {
        for line in lines.values {
            guard let number = line.numbers[ObjectIdentifier(work)] else { continue }
            return line.places.filter { $0.key < number }.sorted { $0.key < $1.key }.map(\.value.work)
        }
        return []
    }

    /// Returns whether an operation is present with a key.
    package func holds(_ work: Work, _ key: UniqueWorkKey) -> Bool {
        lines[key]?.numbers[ObjectIdentifier(work)] != nil
    }

    package enum Arrival {
        /// The operation is the first of its line.
        case runs
        /// The operation must wait for its turn, which comes after the end of this member.
        ///
        /// The other operations are to be canceled, in that order.
        case waits(behind: Member, cancelling: [Work])
        /// The operation is to be canceled, because this one is present.
        case refused(Work)
    }

    /// Adds an operation to the line of its key.
    ///
    /// - Parameters:
    ///   - turn: The turn for which the operation waits if it is not the first.
    ///   - decided: The present operations that have an outcome. These operations do not count if the policy is `keep`.
    ///     Other policies do not use this parameter.
    package mutating func arrive(
        _ work: Work, _ key: UniqueWorkKey, _ policy: UniqueWorkPolicy, turn: Turn, decided: Set<ObjectIdentifier> = []
    ) -> Arrival {
        if policy == .keep,
            let other = lines[key]?.places.values.first(where: { !decided.contains(ObjectIdentifier($0.work)) })
        {
            return .refused(other.work)
        }
        // The last one comes first. If the first one were canceled first, the next one would begin for a moment.
        let others = policy == .replace ? present(key) : []
        lastNumber += 1
        if lines[key] == nil { lines[key] = Line() }
        let last = lines[key]?.last
        let ahead = last.flatMap { lines[key]?.places[$0]?.member }
        lines[key]?.places[lastNumber] = Place(work: work, turn: ahead == nil ? nil : turn, before: last)
        lines[key]?.numbers[ObjectIdentifier(work)] = lastNumber
        lines[key]?.last = lastNumber
        guard let last, let ahead else { return .runs }
        lines[key]?.places[last]?.after = lastNumber
        return .waits(behind: ahead, cancelling: others)
    }

    package enum Departure {
        /// No operation waits for anything else than before.
        case nothing
        /// The turn has come of the operation that is the first now.
        case opens(Turn)
        /// The operation left the middle with its own turn, so the next turn now comes after the end of that member.
        case closesGap(left: Turn, next: Turn, behind: Member)
    }

    /// Removes an operation that ended, or that is not to wait in line after all.
    package mutating func leave(_ work: Work, _ key: UniqueWorkKey) -> Departure {
        guard let number = lines[key]?.numbers.removeValue(forKey: ObjectIdentifier(work)),
            let place = lines[key]?.places.removeValue(forKey: number)
        else { return .nothing }
        trash.append(place)
        if let before = place.before { lines[key]?.places[before]?.after = place.after }
        if let after = place.after { lines[key]?.places[after]?.before = place.before }
        if lines[key]?.last == number { lines[key]?.last = place.before }
        guard let after = place.after else {
            if place.before == nil, let index = lines.index(forKey: key) { trash.append(lines.remove(at: index)) }
            return .nothing
        }
        guard let next = lines[key]?.places[after]?.turn else { return .nothing }
        guard let before = place.before, let left = place.turn, let behind = lines[key]?.places[before]?.member else {
            lines[key]?.places[after]?.turn = nil
            return .opens(next)
        }
        return .closesGap(left: left, next: next, behind: behind)
    }
}

/// The key of an operation in its queue.
package struct UniqueWorkKey: Hashable, @unchecked Sendable {
    // Sendable: it is made of a value that is.

    private let value: AnyHashable

    package init(_ value: some Hashable & Sendable) { self.value = AnyHashable(value) }
}

extension QueueManager {
    /// Adds an operation with a key and ensures that the queue runs only one operation with this key at a time.
    ///
    /// ```swift
    /// let queue = QueueManager("sync")
    /// let upload = ClosureOperation { print("uploading") }
    /// try queue.addUnique(upload, key: "upload", policy: .keep)
    /// ```
    ///
    /// An *existing operation* is an operation that was added with the key, under any policy, and has not ended. The
    /// policy decides what happens to the existing operations and to the new operation.
    ///
    /// - Parameters:
    ///   - operation: The operation to add.
    ///   - key: Any hashable value. The key applies only to this queue. The queue holds a lock while it calls the key's
    ///     `==` and `hash(into:)` methods, so these methods must only compare and hash.
    ///   - policy: The policy that decides which operation runs.
    /// - Returns: `false` if the queue kept an existing operation and canceled the new operation; otherwise, `true`.
    /// - Throws: An ``OperationSetupError`` for the same reasons as `add`. The code is `cycle` if the new operation
    ///   would have to wait for an existing operation that itself waits for the new operation.
    @discardableResult
    public func addUnique(
        _ operation: ManagedOperation, key: some Hashable & Sendable, policy: UniqueWorkPolicy
    ) throws(OperationSetupError) -> Bool {
        // The table would never find a key such as `Double.nan` again, and no other operation has an equal key.
        guard key == key else {
            try add(operation)
            return true
        }
        return try engine.uniqueWork.add(operation, UniqueWorkKey(key), policy, to: engine) {
            epoch throws(OperationSetupError) in
            try engine.add(operation, in: epoch)
        }
    }
}

extension CancellationCause.Code {
    /// The queue already contained an operation with the same key, and the policy for unique work was `keep`.
    public static let alreadyPresent = Self("alreadyPresent")
}

extension CancellationCause {
    static func alreadyPresent(_ name: String, queue: String) -> CancellationCause {
        CancellationCause(
            code: .alreadyPresent,
            message: "The operation was canceled because \(name) is in queue \(queue) with the same key, and is kept. "
                + "To run the new operation, add it with the policy replace or append.")
    }

    static func replaced(_ name: String, queue: String) -> CancellationCause {
        CancellationCause(
            code: .replaced,
            message: "The operation was canceled because \(name) was added to queue \(queue) with the same key and "
                + "replaced it.")
    }
}
