// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

// What comes into a queue.
extension QueueEngine {
    func add(
        _ operation: ManagedOperation, isBarrier: Bool = false, details: EntryDetails? = nil
    ) throws(QueueError) {
        if let refusal = operation.claim(for: self) { throw refusal }
        var level: QueueLevel?
        let refusal = apply { state, after -> QueueError? in
            if let refusal = self.refusal(of: 1, state) { return refusal }
            level = enter(operation, isBarrier: isBarrier, details, &state, &after)
            return nil
        }
        if let refusal {
            operation.unclaim()
            throw refusal
        }
        if let level { operation.raiseUpstreamIfNeeded(level) }
    }

    /// Adds all or none.
    func add(_ operations: [ManagedOperation]) throws(QueueError) {
        var claimed = 0
        do throws(QueueError) {
            for operation in operations {
                if let refusal = operation.claim(for: self) { throw refusal }
                claimed += 1
            }
            if let refusal = state.withLock({ refusal(of: operations.count, $0) }) { throw refusal }
        } catch {
            for operation in operations.prefix(claimed) { operation.unclaim() }
            throw error
        }
        // In portions, so that the threads of the queue do not wait for all of it.
        var rest = operations[...]
        while !rest.isEmpty {
            let portion = rest.prefix(64)
            rest = rest.dropFirst(64)
            // Few raise what they wait for, and to ask each again later would fetch it into the cache once more.
            var raising: [(ManagedOperation, QueueLevel)] = []
            apply { state, after in
                for operation in portion {
                    guard let level = enter(operation, isBarrier: false, nil, &state, &after) else { continue }
                    if ManagedOperation.mayRaise(level) { raising.append((operation, level)) }
                }
            }
            for (operation, level) in raising { operation.raiseUpstreamIfNeeded(level) }
        }
    }

    func add(
        closure: @escaping @Sendable () -> Void, level: QueueLevel, isBarrier: Bool = false, name: String? = nil
    ) throws(QueueError) {
        let refusal = apply { state, _ -> QueueError? in
            if let refusal = self.refusal(of: 1, state) { return refusal }
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

    /// Why that many more cannot be taken.
    func refusal(of count: Int, _ state: State) -> QueueError? {
        if state.isClosed { return .closed(queue: name) }
        let (sum, overflow) = state.machine.live.addingReportingOverflow(count)
        return overflow || sum > state.capacity ? .full(queue: name, capacity: state.capacity) : nil
    }
}
