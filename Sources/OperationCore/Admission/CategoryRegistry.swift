// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The categories of the process: one machine under one lock.
enum CategoryRegistry {
    private typealias Machine = CategoryMachine<ObjectIdentifier, AdmissionTicket>

    private static let machine = Locked(Machine())

    /// Asks for categories; returns whether they are held now.
    ///
    /// If not, the operation is told later.
    static func ask(_ ticket: AdmissionTicket, for categories: [OperationCategory]) -> Bool {
        let demands = categories.map { Machine.Demand(ObjectIdentifier($0), limit: $0.limit) }
        return machine.withLock { $0.ask(ticket, for: demands) }
    }

    /// Gives back what the ticket holds, or takes back what it asks for, and tells those whose turn it is.
    static func leave(_ ticket: AdmissionTicket) {
        // Told of their turn, these do no more than line up somewhere: no recursion, however many they are.
        for next in machine.withLock({ $0.leave(ticket) }) { next.operation?.admissionDidPass(.categories, next) }
    }

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
