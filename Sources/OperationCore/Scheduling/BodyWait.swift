// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A wait of the bodies on one thread for an operation.
///
/// The wait is noted with the operations whose bodies wait, so that ``QueueManager/explain(_:)`` can name it, and so that
/// another body that is about to wait can see whether the two would wait for each other.
struct BodyWait {
    /// The circle of operations that the wait would close, each waiting for the next one; nil if the wait can end.
    let circle: [ManagedOperation]?

    /// Why the wait is refused; nil if it can end.
    var refusal: CancellationCause? { circle.map { .waitsForItself($0.map(\.displayName)) } }

    private let bodies: [ManagedOperation]
    private let operation: ManagedOperation

    /// Notes that the bodies on the calling thread are about to wait; nil if no body runs there.
    static func begin(for awaited: ManagedOperation) -> BodyWait? {
        let operation = awaited.life
        let bodies = ThreadNotes.current.bodies.map { $0.takeUnretainedValue() }
        guard !bodies.isEmpty else {
            return circle(ofTaskThatAwaits: operation).map { BodyWait(circle: $0, bodies: [], operation: operation) }
        }
        // The wait is noted before the search. So of two bodies that begin to wait for each other, at least one sees
        // the other.
        for body in bodies {
            body.core.withLock { if !$0.machine.isFinished { $0.need().bodyWaits.append(operation) } }
        }
        let circle = circle(from: operation, to: bodies) ?? circle(ofTaskThatAwaits: operation)
        return BodyWait(circle: circle, bodies: bodies, operation: operation)
    }

    func end() {
        for body in bodies {
            body.core.withLock { core in
                guard let index = core.extras?.bodyWaits.lastIndex(where: { $0 === operation }) else { return }
                core.extras?.bodyWaits.remove(at: index)
            }
        }
    }

    /// Runs a closure that must return before an operation can end.
    static func within<Result, Failure: Error>(
        _ operation: ManagedOperation, _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let notes = ThreadNotes.current
        // Not retained, because the caller holds the operation.
        notes.bodies.append(Unmanaged.passUnretained(operation))
        defer { notes.bodies.removeLast() }
        return try body()
    }

    /// The greatest number of operations that a search visits.
    private static let mostVisited = 64

    /// Returns the circle that a wait of these bodies for an operation closes; nil if it closes none.
    private static func circle(from first: ManagedOperation, to bodies: [ManagedOperation]) -> [ManagedOperation]? {
        // A group around a body ends after the body.
        var needing: [ObjectIdentifier: ManagedOperation] = [:]
        for body in bodies {
            var next: ManagedOperation? = body
            while let operation = next, needing.updateValue(body, forKey: ObjectIdentifier(operation)) == nil {
                next = operation.operationAround
            }
        }
        if let body = needing[ObjectIdentifier(first)] { return closed([first], by: body) }
        var search = [(operation: first, from: -1)]
        var seen: Set = [ObjectIdentifier(first)]
        var position = 0
        while position < min(search.count, mostVisited) {
            for next in search[position].operation.needed where seen.insert(ObjectIdentifier(next)).inserted {
                search.append((next, position))
                guard let body = needing[ObjectIdentifier(next)] else { continue }
                var way: [ManagedOperation] = []
                var last = search.count - 1
                while last >= 0 {
                    way.append(search[last].operation)
                    last = search[last].from
                }
                return closed(way.reversed(), by: body)
            }
            position += 1
        }
        return nil
    }

    /// Makes a circle of the way from the awaited operation to the one that needs the body.
    private static func closed(_ way: [ManagedOperation], by body: ManagedOperation) -> [ManagedOperation] {
        way.last === body ? [body] + way : [body] + way + [body]
    }

    /// The circle that the calling task closes if it is the body of an operation, and awaits it or a group around it.
    static func circle(ofTaskThatAwaits awaited: ManagedOperation) -> [ManagedOperation]? {
        let operation = awaited.life
        guard operation.bodyTask != 0 || operation.groupEngine != nil else { return nil }
        let task = currentTask
        guard task != 0, operation.core.withLock({ $0.machine.ending == nil }) else { return nil }
        if operation.bodyTask == task { return [operation, operation] }
        var groups = [operation]
        var position = 0
        while position < min(groups.count, mostVisited) {
            for child in groups[position].groupEngine?.neededChildren ?? [] {
                if child.bodyTask == task { return [child, operation, child] }
                if child.groupEngine != nil { groups.append(child) }
            }
            position += 1
        }
        return nil
    }

    /// A number that identifies the calling task among all tasks that exist; zero outside of tasks.
    static var currentTask: Int { withUnsafeCurrentTask { $0?.hashValue ?? 0 } }
}

extension ManagedOperation {
    /// The group whose child the operation is.
    fileprivate var operationAround: ManagedOperation? { groupOfChild }

    /// The operations that must end before this one can, as far as they are known.
    fileprivate var needed: [ManagedOperation] {
        let (isOver, waits, node) = core.withLock { core in
            let isWaiting = !core.machine.isStarted && !core.isReady
            return (core.machine.isFinished, core.extras?.bodyWaits ?? [], isWaiting ? core.node : nil)
        }
        if isOver { return [] }
        var needed = waits + (node?.liveUpstream ?? []) + (groupEngine?.neededChildren ?? [])
        switch admissionStanding {
        case .categories(let categories):
            // If several operations may hold a category, any of them may give it back.
            for category in categories where category.limit == 1 { needed += category.holders.filter { $0 !== self } }
        case .throttled(_, _, let runner): needed += [runner].compactMap { $0 }.filter { $0 !== self }
        case .none, .evaluating: break
        }
        return needed
    }

    /// Reports a wait that cannot end.
    func reportCircle(_ circle: [ManagedOperation]) {
        let names = circle.map(\.displayName)
        OperationDiagnostics.report(.waitsForItself, by: self, CancellationCause.waitsForItself(names).message)
    }
}

extension GroupEngine {
    /// The children that must end before the group can.
    fileprivate var neededChildren: [ManagedOperation] {
        // If some results suffice, the other children are canceled.
        state.withLock { $0.machine.policy.hasWinners ? [] : $0.children.compactMap(\.operation?.life) }
    }
}
