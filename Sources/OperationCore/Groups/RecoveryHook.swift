// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A recovery whose type is not known: which children it is for, and how it is asked.
struct RecoveryHook: Sendable {
    /// How often it is asked for one child.
    let limit: Int
    let fits: @Sendable (ManagedOperation) -> Bool
    /// The user's: called outside every lock, in a task of its own.
    let ask: @Sendable (ManagedOperation, OperationFailure<any Error>, Int) async throws -> RecoveryAnswer

    init<Value>(
        limit: Int, _ ask: @escaping @Sendable (FailedChild<Value>) async throws -> ChildRecovery<Value>
    ) {
        self.limit = max(limit, 1)
        fits = { $0.givesResult(of: Value.self) }
        self.ask = { operation, failure, attempt in
            try await ask(FailedChild(operation: operation, failure: failure, attempt: attempt)).answer
        }
    }
}

/// What a group has to recover its children with, and those that are being recovered.
struct GroupRecoveries: Sendable {
    /// For all children.
    var hooks: [RecoveryHook] = []
    /// For one child each.
    var own: [GroupMachine.Slot: RecoveryHook] = [:]
    var running: [GroupMachine.Slot: GroupRescue] = [:]

    func hook(for child: ManagedOperation, at slot: GroupMachine.Slot) -> RecoveryHook? {
        own[slot] ?? hooks.first { $0.fits(child) }
    }
}

/// One child that is being recovered, from its end until that is settled.
final class GroupRescue: Sendable {
    /// Marks a child as one that took the place of another.
    static let tag: Int32 = -2

    private struct State {
        var attempt = 0
        var isOver = false
        var task: Task<Void, Never>?
        var result: (@Sendable () -> (any AnyStandIn)?)?
    }

    let original: ManagedOperation
    let slot: GroupMachine.Slot
    let tag: Int32
    let ending: LifecycleMachine.Ending
    let failure: GroupFailure.Child
    let hook: RecoveryHook
    private let state = Locked(State())

    init(
        _ original: ManagedOperation, _ place: (slot: GroupMachine.Slot, tag: Int32),
        _ ending: LifecycleMachine.Ending, _ failure: GroupFailure.Child, _ hook: RecoveryHook
    ) {
        (self.original, slot, tag) = (original, place.slot, place.tag)
        (self.ending, self.failure, self.hook) = (ending, failure, hook)
    }

    /// The number of the next attempt; nil if there is to be none.
    func nextAttempt() -> Int? {
        state.withLock { state in
            guard !state.isOver, state.attempt < hook.limit else { return nil }
            state.attempt += 1
            return state.attempt
        }
    }

    var mayAskAgain: Bool { state.withLock { !$0.isOver && $0.attempt < hook.limit } }

    /// Keeps the task of the hook, to cancel it with the recovery.
    ///
    /// It may have answered by now, and the hook be asked once more.
    func keep(_ task: Task<Void, Never>, of attempt: Int) {
        let isOver = state.withLock { state in
            if !state.isOver, state.attempt == attempt { state.task = task }
            return state.isOver
        }
        if isOver { task.cancel() }
    }

    /// Keeps what gives the result of the operation that took the child's place.
    func keep(_ result: @escaping @Sendable () -> (any AnyStandIn)?) {
        let left = state.withLock { exchange(&$0.result, with: result) }
        withExtendedLifetime(left) {}
    }

    /// The result of the operation that took the child's place.
    var result: (any AnyStandIn)? { state.withLock { $0.result }?() }

    /// It is over; what the hook still says does not count.
    func end() {
        let left = state.withLock { state in
            state.isOver = true
            return (exchange(&state.task, with: nil), exchange(&state.result, with: nil))
        }
        left.0?.cancel()
        withExtendedLifetime(left) {}
    }
}
