// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

// What comes into a queue.
extension QueueEngine {
    /// Adds an operation, in a place that was kept for it if it `hasPlace`; whether or not it is added, that is gone then.
    func add(
        _ operation: ManagedOperation, isBarrier: Bool = false, details: EntryDetails? = nil, hasPlace: Bool = false
    ) throws(QueueError) {
        let operation = operation.held
        if let refusal = operation.claim(for: self) {
            if hasPlace { giveBackPlaces(1) }
            throw refusal
        }
        var level: QueueLevel?
        let refusal = apply { state, after -> QueueError? in
            if hasPlace { state.reserved -= 1 }
            if let refusal = self.refusal(of: 1, hasPlace: hasPlace, state) { return refusal }
            level = enter(operation, isBarrier: isBarrier, details, &state, &after)
            return nil
        }
        if let refusal {
            operation.unclaim()
            throw refusal
        }
        if let level { operation.raiseUpstreamIfNeeded(level) }
    }

    /// Adds all or none; `link` is called once it is certain that the queue takes them, and may still refuse.
    ///
    /// Where it `hasPlaces`, as many were kept; if nothing is added, they are gone then.
    func add(
        _ operations: [ManagedOperation], hasPlaces: Bool = false, linking link: () throws(QueueError) -> Void = {}
    ) throws(QueueError) {
        let operations = operations.map(\.held)
        var claimed = 0
        var kept = hasPlaces ? operations.count : 0
        do throws(QueueError) {
            for operation in operations {
                if let refusal = operation.claim(for: self) { throw refusal }
                claimed += 1
            }
            try keepPlaces(operations.count, areKept: hasPlaces)
            kept = operations.count
            try link()
        } catch {
            for operation in operations.prefix(claimed) { operation.unclaim() }
            if kept > 0 { giveBackPlaces(kept) }
            throw error
        }
        enterClaimed(operations)
    }

    /// Takes in operations for which places are kept.
    func enterClaimed(_ operations: [ManagedOperation]) {
        // In portions, so that the threads of the queue do not wait for all of it.
        var rest = operations[...]
        while !rest.isEmpty {
            let portion = rest.prefix(64)
            rest = rest.dropFirst(64)
            // Few raise what they wait for, and to ask each again later would fetch it into the cache once more.
            var raising: [(ManagedOperation, QueueLevel)] = []
            apply { state, after in
                state.reserved -= portion.count
                for operation in portion {
                    guard let level = enter(operation, isBarrier: false, nil, &state, &after) else { continue }
                    if ManagedOperation.mayRaise(level) { raising.append((operation, level)) }
                }
            }
            for (operation, level) in raising { operation.raiseUpstreamIfNeeded(level) }
        }
    }

    func add(
        closure: @escaping @Sendable () -> Void, level: QueueLevel, isBarrier: Bool = false, name: String? = nil,
        hasPlace: Bool = false
    ) throws(QueueError) {
        let refusal = apply { state, _ -> QueueError? in
            if hasPlace { state.reserved -= 1 }
            if let refusal = self.refusal(of: 1, hasPlace: hasPlace, state) { return refusal }
            let details = name.map { EntryDetails(name: $0) }
            let slot = state.machine.enter(.closure(closure), level: level, isBarrier: isBarrier, details: details)
            state.machine.place(slot, .ready)
            return nil
        }
        if let refusal { throw refusal }
    }

    private func enter(
        _ operation: ManagedOperation, isBarrier: Bool, _ details: EntryDetails?, _ state: inout State,
        _ after: inout After
    ) -> QueueLevel? {
        let slot = state.machine.enter(.operation(operation), isBarrier: isBarrier, details: details)
        guard let place = operation.seat(in: self, slot) else { return nil }
        put(operation, at: place, &state, &after)
        return place.level
    }

    private func keepPlaces(_ count: Int, areKept: Bool) throws(QueueError) {
        let refusal = state.withLock { state in
            let refusal = self.refusal(of: count, hasPlace: areKept, state)
            if refusal == nil, !areKept { state.reserved += count }
            return refusal
        }
        if let refusal { throw refusal }
    }

    /// Places that were kept are not needed, and may be the next one's.
    func giveBackPlaces(_ count: Int) {
        apply { state, _ in state.reserved -= count }
    }

    /// Why that many more cannot be taken.
    func refusal(of count: Int, hasPlace: Bool = false, _ state: State) -> QueueError? {
        if state.isClosed { return .closed(queue: name) }
        if hasPlace { return nil }
        let (sum, overflow) = (state.machine.live + state.reserved + state.gathered).addingReportingOverflow(count)
        return overflow || sum > state.capacity
            ? .full(queue: name, capacity: state.capacity, more: count) : nil
    }
}
