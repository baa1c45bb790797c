// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A resource that only a limited number of operations can use at a time, such as a database, a folder or a device.
///
/// ```swift
/// let database = OperationCategory("database", limit: 1)
/// let photos = OperationCategory("photos", limit: 2)
/// let operation = ClosureOperation { 1 }
/// operation.categories = [database, photos]
/// operation.start()
/// ```
///
/// Operations that have the same category object share its limit, whether or not they are in a queue. The name is only
/// for display, so two category objects with the same name are independent.
///
/// An operation requests all of its categories in one step, when its dependencies have ended and its conditions,
/// throttle and delay allow the operation to begin. The operation gets either all of its categories or none, so it
/// never holds one category while it waits for another. When the operation has ended, it releases its categories.
///
/// Each category has one waiting list for each queue, and one for operations outside queues. An operation gets its
/// categories when it is first in its list for each category and no category has reached its limit. An operation that
/// waits for several categories keeps its position in all of their lists, even if one of the categories is available.
///
/// An operation in a ``QueueManager`` gets its categories together with its slot in the queue. While the operation
/// waits for a slot, it holds no category. If the operation gets a slot but not its categories, it releases the slot.
/// If more than eight later operations have acquired their categories first, the operation keeps its next slot for at
/// most about 16 seconds while it waits for the categories.
public final class OperationCategory: Sendable {
    /// The name of the category, for display.
    public let name: String
    /// The maximum number of operations that hold the category at the same time.
    public let limit: Int

    /// Creates a category with a name and a limit.
    ///
    /// - Parameters:
    ///   - name: The name of the category, for display.
    ///   - limit: The maximum number of operations that hold the category at the same time. The default is `1`, and a
    ///     value below 1 is treated as 1.
    public init(_ name: String, limit: Int = 1) {
        self.name = name
        self.limit = max(limit, 1)
    }

    /// The operations that currently hold the category, in the order in which they acquired it.
    package var holders: [ManagedOperation] {
        CategoryRegistry.machine.withLock { $0.holders(of: ObjectIdentifier(self)) }.compactMap(\.operation)
    }

    /// The number of operations that currently wait for the category.
    package var waitingCount: Int {
        CategoryRegistry.machine.withLock { $0.waitingCount(for: ObjectIdentifier(self)) }
    }

    /// The operations that wait for the category, in the order in which they arrived.
    package var waiters: [ManagedOperation] {
        CategoryRegistry.machine.withLock { $0.waiting(for: ObjectIdentifier(self)) }.compactMap(\.operation)
    }
}

extension OperationCategory: CustomStringConvertible {
    /// A description that contains the name and, if the limit is above 1, the limit.
    public var description: String { limit == 1 ? name : "\(name) (\(limit) at a time)" }
}

extension OperationCategory: Hashable {
    /// Returns a Boolean value that indicates whether two categories are the same object.
    public static func == (left: OperationCategory, right: OperationCategory) -> Bool { left === right }

    /// Hashes the identity of the category object.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// The categories of the process, in one machine under one lock.
enum CategoryRegistry {
    fileprivate typealias Machine = CategoryMachine<ObjectIdentifier, AdmissionTicket>

    fileprivate static let machine = Locked(Machine())

    /// Applies an event, and notifies the operations whose turn it is.
    private static func change<Result>(_ event: (inout Machine) -> (Result, served: [AdmissionTicket])) -> Result {
        let (result, served, called) = machine.withLock { machine in
            let (result, served) = event(&machine)
            return (result, served, machine.takeCalled())
        }
        // A notified operation only gets in line elsewhere, so this does not recurse, whatever the number of
        // operations.
        for next in served { next.operation?.categoriesAreHeld(next) }
        for next in called { next.operation?.categoriesSeemFree(next) }
        return result
    }

    private static func demands(_ categories: [OperationCategory]) -> [Machine.Demand] {
        categories.map { Machine.Demand(ObjectIdentifier($0), limit: $0.limit) }
    }

    /// Asks for categories, and returns whether the ticket holds them now.
    ///
    /// If not, the operation is notified later. If `queue` is not nil, the operation has a slot there and must give it
    /// up.
    static func ask(
        _ ticket: AdmissionTicket, for categories: [OperationCategory], in queue: HostQueue? = nil
    ) -> Bool {
        let demands = demands(categories), line = queue.map(ObjectIdentifier.init)
        return change { ($0.ask(ticket, for: demands, in: line), []) }
    }

    /// Puts an operation of a queue in line, and notifies it when the categories seem to be free.
    static func enqueue(_ ticket: AdmissionTicket, for categories: [OperationCategory], in queue: HostQueue) {
        let demands = demands(categories), line = ObjectIdentifier(queue)
        change { machine in
            machine.enqueue(ticket, for: demands, in: line)
            return ((), [])
        }
    }

    /// Returns how long a refused operation may keep its slot and wait, or `nil` if it must give up the slot.
    static func slotWaitLimit(of ticket: AdmissionTicket) -> Duration? {
        machine.withLock { $0.slotWaitLimit(of: ticket) }
    }

    static func beginWaitingWithSlot(_ ticket: AdmissionTicket) { change { ((), $0.promote(ticket)) } }

    /// Returns whether the categories are held.
    static func endWaitingWithSlot(_ ticket: AdmissionTicket) -> Bool {
        change { machine in
            let end = machine.demote(ticket)
            return (end.isHeld, end.served)
        }
    }

    /// Gives back what the ticket holds, or withdraws its request.
    static func leave(_ ticket: AdmissionTicket) { change { ((), $0.leave(ticket)) } }
}
