// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A decision of a recovery closure about a child that failed or was canceled.
///
/// ```swift
/// let names = GroupOperation.all([
///     ClosureOperation { () throws -> String in throw CancellationError() }
/// ])
/// names.recover { (failed: FailedChild<String>) in .result("nobody") }
/// ```
public struct ChildRecovery<Value: Sendable>: Sendable {
    let answer: RecoveryAnswer

    /// Returns a decision that uses a value as the result of the child.
    ///
    /// - Parameter value: The value that the group uses as the child's result.
    public static func result(_ value: Value) -> ChildRecovery {
        ChildRecovery(answer: .result(Box(value)))
    }

    /// Returns a decision that replaces the child with another operation.
    ///
    /// - Parameter other: The operation that replaces the child.
    ///
    /// The operation may do the same work again, or other work with a result of the same type. The operation becomes a
    /// child of the group in place of the original child. To replace the child with several operations, pass a group.
    public static func operation<Failure>(_ other: TypedOperation<Value, Failure>) -> ChildRecovery {
        ChildRecovery(answer: .operation(other, { other.outcome?.result.map { Box($0) } }))
    }

    /// A decision that keeps the child's error or cancellation.
    public static var fail: ChildRecovery { ChildRecovery(answer: .fail(nil)) }
}

/// The decision of a recovery, without the type of the result.
enum RecoveryAnswer: Sendable {
    case result(any AnyObject & Sendable)
    case operation(ManagedOperation, _ result: @Sendable () -> (any AnyObject & Sendable)?)
    /// The child fails, and the error is the one that the recovery threw, if any.
    case fail((any Error)?)
}

/// The information that a recovery closure receives about a child that failed or was canceled.
public struct FailedChild<Value: Sendable>: Sendable {
    /// The child, which has ended.
    public let operation: ManagedOperation
    /// The error of the child, or the cause of the child's cancellation.
    ///
    /// In the second and later calls of the closure, this property is the failure of the operation that last replaced
    /// the child.
    public let failure: OperationFailure<any Error>
    /// The number of calls to a recovery closure for this child, including the current call.
    public let attempt: Int

    /// The name of the child, or the name of the child's type if the child has no name.
    public var name: String { operation.life.displayName }

    /// Returns the error in ``failure`` if the error has the given type, or `nil` otherwise.
    ///
    /// - Parameter type: The type of the error. By default, the compiler infers the type from the context.
    public func error<Wanted: Error>(as type: Wanted.Type = Wanted.self) -> Wanted? {
        failure.underlyingError as? Wanted
    }
}

// Recovery of children that failed or were canceled.
extension GroupOperation {
    /// Adds a closure that decides how the group handles each child that fails or is canceled.
    ///
    /// The closure is called for children whose result type is `Value`, before the group's policy or body receives the
    /// failure. The closure may return a result, replace the child with another operation, or let the child fail:
    ///
    /// ```swift
    /// let load = TaskOperation { () async throws -> Int in throw CancellationError() }
    /// let sizes = GroupOperation.all([load])
    /// sizes.recover(atMost: 3) { (failed: FailedChild<Int>) in
    ///     failed.attempt < 3 ? .operation(TaskOperation { 7 }) : .result(0)
    /// }
    /// ```
    ///
    /// The closure runs in its own task and may suspend. While the closure runs, the child does not count toward the
    /// group's width, and the group does not end. When the group cancels its children, it also cancels this task, does
    /// not wait for the task, and ignores the decision of the closure.
    ///
    /// The closure is not called if the group canceled the child, or if the child was canceled because a dependency
    /// failed or was canceled. The closure is also not called for the causes `taskCancelled` and `tooManyWaits`.
    /// Operations that depend on the child receive the child's own outcome, not the outcome of the recovery.
    ///
    /// If there are several closures, the group calls only one of them for a child. If you passed a closure to `run` or
    /// `perform` with the child, the group calls that closure. Otherwise, the group calls the first closure that you
    /// added for the child's result type.
    ///
    /// - Parameters:
    ///   - limit: The maximum number of calls to the closure for one child. Within this limit, the closure is called
    ///     again each time the replacement fails or is canceled. The default is `1`, and a value below 1 is treated as
    ///     1.
    ///   - hook: The closure that decides how the group handles the child. The closure runs in its own task. If the
    ///     closure throws an error, or if the last replacement fails or is canceled, the group uses the child's own
    ///     outcome. ``GroupFailure/Child/recoveryFailure`` contains the failure of the recovery.
    public func recover<Value: Sendable>(
        atMost limit: Int = 1, _ hook: @escaping @Sendable (FailedChild<Value>) async throws -> ChildRecovery<Value>
    ) {
        engine.add(RecoveryHook(limit: limit, hook))
    }
}

extension GroupScope {
    /// Runs a child without blocking a thread and returns the child's result or the result of a recovery.
    ///
    /// The closure works as in ``GroupOperation/recover(atMost:_:)``. The group does not call the closure for an
    /// operation that is already in a queue or in a group, was started, or has ended.
    ///
    /// - Parameters:
    ///   - child: The operation to run.
    ///   - weight: The weight of the child in the group's progress. The default is `1`.
    ///   - limit: The maximum number of calls to the closure. The default is `1`.
    ///   - hook: The closure that decides how the group handles a failure or a cancellation of the child. The closure
    ///     runs in its own task.
    /// - Throws: An ``OperationFailure`` with the child's own error or the cause of its cancellation, if no recovery
    ///   produced a result.
    public func run<ResultType, ErrorType>(
        _ child: TypedOperation<ResultType, ErrorType>, weight: Double = 1, recoveringAtMost limit: Int = 1,
        by hook: @escaping @Sendable (FailedChild<ResultType>) async throws -> ChildRecovery<ResultType>
    ) async throws(OperationFailure<ErrorType>) -> ResultType {
        let terms = ChildTerms(isShielded: isShielded, weight: weight, hook: RecoveryHook(limit: limit, hook))
        return try await child.outcome(after: engine.run(child, terms)).get()
    }

    /// Runs a child while the calling thread waits, and returns the child's result or the result of a recovery.
    ///
    /// The calling thread must be the thread of the group's body. See ``perform(_:weight:)``.
    ///
    /// - Parameters:
    ///   - child: The operation to run.
    ///   - weight: The weight of the child in the group's progress. The default is `1`.
    ///   - limit: The maximum number of calls to the closure. The default is `1`.
    ///   - hook: The closure that decides how the group handles a failure or a cancellation of the child. The closure
    ///     runs in its own task.
    /// - Throws: An ``OperationFailure`` with the child's own error or the cause of its cancellation, if no recovery
    ///   produced a result.
    @available(
        *, noasync,
        message: "This method blocks the thread. In an async body, use run(_:weight:recoveringAtMost:by:)."
    )
    public func perform<ResultType, ErrorType>(
        _ child: TypedOperation<ResultType, ErrorType>, weight: Double = 1, recoveringAtMost limit: Int = 1,
        by hook: @escaping @Sendable (FailedChild<ResultType>) async throws -> ChildRecovery<ResultType>
    ) throws(OperationFailure<ErrorType>) -> ResultType {
        let terms = ChildTerms(isShielded: isShielded, weight: weight, hook: RecoveryHook(limit: limit, hook))
        return try child.outcome(after: engine.perform(child, terms)).get()
    }
}

// Recovery of children.
extension GroupEngine {
    /// Adds a hook for all children that it fits, unless the group has ended.
    func add(_ hook: RecoveryHook) {
        state.withLock { state in
            // The hook may hold the group, and nothing would release it.
            if state.machine.isOver { return }
            var recoveries = state.recoveries ?? GroupRecoveries()
            recoveries.hooks.append(hook)
            state.recoveries = recoveries
        }
    }

    /// Begins the recovery of a child that ended without a result, or continues it when an operation in its place
    /// ended.
    ///
    /// - Returns: Whether the end of the child is reported later.
    func recover(
        _ child: ManagedOperation, _ slot: GroupMachine.Slot, _ tag: Int32, _ ending: LifecycleMachine.Ending
    ) -> Bool {
        guard let recoveries = state.withLock({ $0.recoveries }) else { return false }
        if tag == ParentGroup.replacementTag, let rescue = recoveries.running[slot] {
            replacementDidEnd(child, ending, rescue)
            return true
        }
        guard let hook = recoveries.hook(for: child, at: slot), let failure = failure(of: child, tag, ending),
            !failure.failure.isUnrecoverable
        else { return false }
        return begin(GroupRescue(child, (slot, tag), ending, failure, hook), failure.failure)
    }

    /// Removes the child from its slot and calls the hook.
    private func begin(_ rescue: GroupRescue, _ failure: OperationFailure<any Error>) -> Bool {
        var hasBegun = false
        var ended: ManagedOperation?
        apply { state in
            hasBegun =
                !state.children[Int(rescue.slot)].isGivenUp && state.machine.beginRecovery(rescue.slot)
            guard hasBegun else { return }
            state.recoveries?.running[rescue.slot] = rescue
            ended = exchange(&state.children[Int(rescue.slot)].operation, with: nil)
        }
        extendLifetime(ended)
        // The group was canceled in the meantime, or the hook must not be called again.
        guard hasBegun, let attempt = rescue.nextAttempt() else { return hasBegun }
        let task = Task { [weak self] in
            var answer: RecoveryAnswer
            do {
                answer = try await rescue.hook.ask(rescue.original, failure, attempt)
            } catch {
                answer = .fail(error)
            }
            self?.take(answer, for: rescue)
        }
        rescue.keep(task, of: attempt)
        return true
    }

    private func take(_ answer: RecoveryAnswer, for rescue: GroupRescue) {
        switch answer {
        case .result(let replacement): conclude(rescue, with: replacement)
        case .fail(let error): conclude(rescue, after: error.map { .failed($0) })
        case .operation(let other, let result):
            rescue.keep(result)
            if let error = replace(rescue, by: other) { conclude(rescue, after: .failed(error)) }
        }
    }

    /// Lets another operation take the place of the child, and returns an error if that is not possible.
    private func replace(_ rescue: GroupRescue, by other: ManagedOperation) -> OperationSetupError? {
        // This check holds no lock, because it calls Foundation.
        if other.isHeldByQueue(isByQueue: false) { return OperationSetupError(.inQueue, other) }
        let answer = nest(other) {
            state.withLock { state in
                // The group was canceled in the meantime. The answer comes too late, and the error is not used.
                guard state.recoveries?.running[rescue.slot] === rescue else { return .refused(.ended) }
                return other.core.withLock { core in
                    if let reason = core.reasonAgainstAdoption { return .refused(reason) }
                    let isReady = !state.machine.asksForReadiness || core.isReadyOrListens(for: other)
                    guard state.machine.replace(rescue.slot, isReady: isReady) else { return .refused(.ended) }
                    (core.parent, core.parentSlot, core.parentTag) = (self, rescue.slot, ParentGroup.replacementTag)
                    if let record = other.mapRecord { core.recordAddition(record) }
                    state.children[Int(rescue.slot)].operation = other
                    return .taken
                }
            }
        }
        if case .refused(let reason) = answer { return OperationSetupError(reason, other) }
        beginMeasuring(other)
        apply { _ in }
        cancelIfEndless(other)
        return nil
    }

    private func replacementDidEnd(
        _ other: ManagedOperation, _ ending: LifecycleMachine.Ending, _ rescue: GroupRescue
    ) {
        if ending == .success, let replacement = rescue.result { return conclude(rescue, with: replacement) }
        let failure = failure(of: other, -1, ending)?.failure
        if let failure, rescue.mayAskAgain, begin(rescue, failure) { return }
        conclude(rescue, after: failure)
    }

    /// Counts the child as one that gave this result.
    private func conclude(_ rescue: GroupRescue, with replacement: any AnyObject & Sendable) {
        guard end(rescue) else { return }
        rescue.original.core.release { core in exchange(&core.need().replacementResult, with: replacement) }
        ThreadWorklist.perform { self.settle(rescue.original, rescue.slot, rescue.tag, .success, nil) }
    }

    /// Ends a recovery that failed.
    private func conclude(_ rescue: GroupRescue, after failure: OperationFailure<any Error>?) {
        if end(rescue) { reportFailure(of: rescue, after: failure) }
    }

    /// Gives up a child for which no task waits any more, and returns the operation in its place, to be canceled.
    func giveUp(_ child: ManagedOperation, at slot: GroupMachine.Slot) -> ManagedOperation? {
        var abandoned: GroupRescue?
        let replacement = state.withLock { state -> ManagedOperation? in
            guard state.children.indices.contains(Int(slot)) else { return nil }
            guard let rescue = state.recoveries?.running[slot], rescue.original.life === child.life else {
                // A child that has just ended is not recovered.
                let isPresent = state.children[Int(slot)].operation?.life === child.life
                if isPresent { state.children[Int(slot)].isGivenUp = true }
                return nil
            }
            state.children[Int(slot)].isGivenUp = true
            if !state.machine.isRecovering(slot) { return state.children[Int(slot)].operation }
            abandoned = state.recoveries?.running.removeValue(forKey: slot)
            return nil
        }
        if let abandoned { abandon(abandoned) }
        return replacement
    }

    /// Ends a recovery because the group and the child are being canceled.
    func abandon(_ rescue: GroupRescue) {
        rescue.end()
        reportFailure(of: rescue, after: nil)
    }

    private func reportFailure(of rescue: GroupRescue, after recoveryFailure: OperationFailure<any Error>?) {
        let failure = rescue.failure.adding(recoveryFailure)
        ThreadWorklist.perform { self.settle(rescue.original, rescue.slot, rescue.tag, rescue.ending, failure) }
    }

    /// Ends the recovery, and returns whether it was not over before.
    private func end(_ rescue: GroupRescue) -> Bool {
        let isCurrent = state.withLock { state in
            guard state.recoveries?.running[rescue.slot] === rescue else { return false }
            state.recoveries?.running[rescue.slot] = nil
            return true
        }
        if isCurrent { rescue.end() }
        return isCurrent
    }
}

extension OperationFailure {
    /// Whether the result is not wanted any more, or the group could not wait for it.
    fileprivate var isUnrecoverable: Bool {
        guard let code = cancellation?.code else { return false }
        return followsFromDependency || code == .taskCancelled || code == .tooManyWaits
    }

    /// Whether the failure only follows from that of a dependency.
    var followsFromDependency: Bool {
        guard let code = cancellation?.code else { return false }
        return code == .dependencyFailed || code == .dependencyCancelled
    }
}

extension GroupEngine.State {
    /// Sets a hook for a child that has just been added.
    mutating func setHook(_ hook: RecoveryHook, at slot: GroupMachine.Slot) {
        if recoveries == nil { recoveries = GroupRecoveries() }
        recoveries?.own[slot] = hook
    }

    /// Takes out the recoveries of children that are being canceled.
    mutating func takeRescues(at slots: [GroupMachine.Slot]) -> [GroupRescue] {
        guard recoveries?.running.isEmpty == false else { return [] }
        return slots.compactMap { slot in
            machine.isRecovering(slot) ? recoveries?.running.removeValue(forKey: slot) : nil
        }
    }
}

/// A recovery closure without its result type.
struct RecoveryHook: Sendable {
    /// The maximum number of calls to the closure for one child.
    let limit: Int
    let fits: @Sendable (ManagedOperation) -> Bool
    /// The user's closure, which is called without holding a lock in its own task.
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

/// The recovery hooks of a group, and the recoveries that are under way.
struct GroupRecoveries: Sendable {
    /// The hooks for all children.
    var hooks: [RecoveryHook] = []
    /// The hooks for single children.
    var own: [GroupMachine.Slot: RecoveryHook] = [:]
    var running: [GroupMachine.Slot: GroupRescue] = [:]

    func hook(for child: ManagedOperation, at slot: GroupMachine.Slot) -> RecoveryHook? {
        own[slot] ?? hooks.first { $0.fits(child) }
    }
}

/// The recovery of one child, from its end until the recovery is settled.
final class GroupRescue: Sendable {
    private struct State {
        var attempt = 0
        var isOver = false
        var task: Task<Void, Never>?
        var result: (@Sendable () -> (any AnyObject & Sendable)?)?
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

    /// Returns the number of the next attempt, or `nil` if there is none.
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
    /// The hook may have answered by now, and may be called again.
    func keep(_ task: Task<Void, Never>, of attempt: Int) {
        let isOver = state.withLock { state in
            if !state.isOver, state.attempt == attempt { state.task = task }
            return state.isOver
        }
        if isOver { task.cancel() }
    }

    /// Keeps a closure that returns the result of the operation that took the child's place.
    func keep(_ result: @escaping @Sendable () -> (any AnyObject & Sendable)?) {
        state.release { exchange(&$0.result, with: result) }
    }

    /// The result of the operation that took the child's place.
    var result: (any AnyObject & Sendable)? { state.withLock { $0.result }?() }

    /// Ends the recovery, and cancels the task of the hook, whose answer no longer counts.
    func end() {
        let left = state.withLock { state in
            state.isOver = true
            return (exchange(&state.task, with: nil), exchange(&state.result, with: nil))
        }
        left.0?.cancel()
        extendLifetime(left)
    }
}
