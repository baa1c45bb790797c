// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A wait of the bodies on one thread for an operation.
///
/// The wait is noted with the operations whose bodies wait, so that ``QueueManager/explain(_:)`` can name it, and so that
/// another body that is about to wait can see whether the two would wait for each other.
struct BodyWait {
    /// The circle of operations that the wait closes, each waiting for the next one; nil if the wait can end.
    ///
    /// Another thread may close a circle later: see ``lookAgain(_:)``.
    var circle: [ManagedOperation]? { firstCircle ?? looks?.circle }

    /// Why the wait is refused; nil if it can end.
    var refusal: CancellationCause? { circle.map { .waitsForItself($0.map(\.displayName)) } }

    private let firstCircle: [ManagedOperation]?
    private let bodies: [ManagedOperation]
    private let operation: ManagedOperation
    /// The later looks; nil if the first one has found a circle.
    private let looks: BodyWaitLooks?

    private init(_ circle: [ManagedOperation]?, _ bodies: [ManagedOperation], _ operation: ManagedOperation) {
        firstCircle = circle
        self.bodies = bodies
        self.operation = operation
        looks = circle == nil ? BodyWaitLooks(bodies, operation) : nil
    }

    /// Notes that the bodies on the calling thread are about to wait; nil if no body runs there.
    static func begin(for awaited: ManagedOperation) -> BodyWait? {
        let operation = awaited.life
        let bodies = ThreadNotes.current.bodies.map { $0.takeUnretainedValue() }
        guard !bodies.isEmpty else {
            return circle(ofTaskThatAwaits: operation).map { BodyWait($0, [], operation) }
        }
        // The wait is noted before the search. So of two bodies that begin to wait for each other, at least one sees
        // the other.
        for body in bodies {
            body.core.withLock { if !$0.machine.isFinished { $0.need().bodyWaits.append(operation) } }
        }
        let circle =
            CircleSearch.circle(from: operation, to: bodies, visiting: CircleSearch.fewOperations)
            ?? circle(ofTaskThatAwaits: operation)
        return BodyWait(circle, bodies, operation)
    }

    /// Looks again every now and then whether the wait can end, on the clock of the awaited operation.
    ///
    /// - Parameter whenFound: Called once, on a thread of the clock, if the wait cannot end.
    func lookAgain(_ whenFound: @escaping @Sendable ([ManagedOperation]) -> Void) { looks?.begin(whenFound) }

    func end() {
        looks?.end()
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

    /// The circle that the calling task closes if it is the body of an operation, and awaits it or a group around it.
    static func circle(ofTaskThatAwaits awaited: ManagedOperation) -> [ManagedOperation]? {
        let operation = awaited.life
        guard operation.core.withLock({ $0.machine.isExecuting && $0.machine.ending == nil }),
            let body = BodyTasks.operation
        else { return nil }
        if body === operation { return [operation, operation] }
        guard operation.groupEngine != nil else { return nil }
        var next = body.groupOfChild
        // If some results suffice for a group, it can end without the body.
        while let group = next, group.groupEngine?.needsAllChildren == true {
            if group === operation { return [body, operation, body] }
            next = group.groupOfChild
        }
        return nil
    }
}

extension ManagedOperation {
    /// Reports a wait that cannot end.
    func reportCircle(_ circle: [ManagedOperation]) {
        let names = circle.map(\.displayName)
        OperationDiagnostics.report(.waitsForItself, by: self, CancellationCause.waitsForItself(names).message)
    }
}

/// The looks at a wait of bodies after it has begun.
///
/// Another thread may close a circle while the bodies wait: it adds a dependency, or an operation asks for a category.
private final class BodyWaitLooks: Sendable {
    private struct State {
        var timer: (any OperationTimer)?
        /// The number of the look for which the timer is.
        var number = 0
        var circle: [ManagedOperation]?
        var isOver = false
    }

    private static let longestPause = Duration.seconds(60)

    private let bodies: [ManagedOperation]
    private let operation: ManagedOperation
    private let state = Locked(State())

    init(_ bodies: [ManagedOperation], _ operation: ManagedOperation) {
        self.bodies = bodies
        self.operation = operation
    }

    var circle: [ManagedOperation]? { state.withLock { $0.circle } }

    func begin(_ whenFound: @escaping @Sendable ([ManagedOperation]) -> Void) {
        look(1, after: .seconds(1), on: operation.clock, whenFound)
    }

    func end() {
        let timer = state.withLock { state in
            state.isOver = true
            return exchange(&state.timer, with: nil)
        }
        timer?.cancel()
    }

    private func look(
        _ number: Int, after pause: Duration, on clock: any OperationClock,
        _ whenFound: @escaping @Sendable ([ManagedOperation]) -> Void
    ) {
        let timer = clock.schedule(after: pause) { [weak self] in
            guard let self, !state.withLock({ $0.isOver }) else { return }
            let most = CircleSearch.manyOperations
            guard let circle = CircleSearch.circle(from: operation, to: bodies, visiting: most) else {
                return look(number + 1, after: min(pause * 2, Self.longestPause), on: clock, whenFound)
            }
            let isWanted = state.withLock { state in
                if !state.isOver { state.circle = circle }
                return !state.isOver
            }
            if isWanted { whenFound(circle) }
        }
        let (old, isOver) = state.withLock { state -> ((any OperationTimer)?, Bool) in
            // The timer may have fired by now, and that of the next look may be stored.
            guard state.number < number else { return (nil, state.isOver) }
            state.number = number
            return (exchange(&state.timer, with: timer), state.isOver)
        }
        withExtendedLifetime(old) {}
        if isOver { timer.cancel() }
    }
}
