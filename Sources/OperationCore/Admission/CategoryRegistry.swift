// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The categories of the process: one machine under one lock.
enum CategoryRegistry {
    private typealias Machine = CategoryMachine<ObjectIdentifier, AdmissionTicket>

    private static let machine = Locked(Machine())

    /// Applies an event, and notifies the operations whose turn it is.
    private static func change<Result>(_ event: (inout Machine) -> (Result, served: [AdmissionTicket])) -> Result {
        let (result, served, called) = machine.withLock { machine in
            let (result, served) = event(&machine)
            return (result, served, machine.takeCalled())
        }
        // A notified operation only lines up elsewhere, so this does not recurse, however many operations there are.
        for next in served { next.operation?.categoriesAreHeld(next) }
        for next in called { next.operation?.categoriesSeemFree(next) }
        return result
    }

    private static func demands(_ categories: [OperationCategory]) -> [Machine.Demand] {
        categories.map { Machine.Demand(ObjectIdentifier($0), limit: $0.limit) }
    }

    /// Asks for categories; returns whether they are held now.
    ///
    /// If not, the operation is notified later. If `queue` is not nil, the operation has a slot there and must give it
    /// up.
    static func ask(
        _ ticket: AdmissionTicket, for categories: [OperationCategory], in queue: QueueEngine? = nil
    ) -> Bool {
        let demands = demands(categories), line = queue.map(ObjectIdentifier.init)
        return change { ($0.ask(ticket, for: demands, in: line), []) }
    }

    /// Puts an operation of a queue in line, and notifies it when the categories seem to be free.
    ///
    /// - Returns: False, because the operation holds nothing yet.
    static func lineUp(_ ticket: AdmissionTicket, for categories: [OperationCategory], in queue: QueueEngine) -> Bool {
        let demands = demands(categories), line = ObjectIdentifier(queue)
        change { machine in
            machine.lineUp(ticket, for: demands, in: line)
            return ((), [])
        }
        return false
    }

    /// Returns how long an operation that was refused may keep its slot and wait; nil if it must give up the slot.
    static func patience(of ticket: AdmissionTicket) -> Duration? { machine.withLock { $0.patience(of: ticket) } }

    static func beginWaitingWithSlot(_ ticket: AdmissionTicket) { change { ((), $0.promote(ticket)) } }

    /// Returns whether the categories are held.
    static func endWaitingWithSlot(_ ticket: AdmissionTicket) -> Bool {
        change { machine in
            let end = machine.demote(ticket)
            return (end.isHeld, end.served)
        }
    }

    /// Gives back what the ticket holds, or takes back what it asks for.
    static func leave(_ ticket: AdmissionTicket) { change { ((), $0.leave(ticket)) } }

    static func holders(of category: OperationCategory) -> [ManagedOperation] {
        machine.withLock { $0.holders(of: ObjectIdentifier(category)) }.compactMap(\.operation)
    }

    static func waiters(for category: OperationCategory) -> [ManagedOperation] {
        machine.withLock { $0.waiting(for: ObjectIdentifier(category)) }.compactMap(\.operation)
    }

    static func waitingCount(for category: OperationCategory) -> Int {
        machine.withLock { $0.waitingCount(for: ObjectIdentifier(category)) }
    }

    /// Whether nobody holds or waits for anything.
    static var isEmpty: Bool { machine.withLock { $0.isEmpty } }
}
