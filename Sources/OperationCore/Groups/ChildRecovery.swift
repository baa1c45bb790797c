// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What a recovery does about a child that gave no result.
///
/// ```swift
/// let names = GroupOperation.all([ClosureOperation { () throws -> String in throw CancellationError() }])
/// names.recover { (failed: FailedChild<String>) in .result("nobody") }
/// ```
public struct ChildRecovery<Value: Sendable>: Sendable {
    let answer: RecoveryAnswer

    /// The child counts as one that gave this.
    public static func result(_ value: Value) -> ChildRecovery {
        ChildRecovery(answer: .result(StandIn(value)))
    }

    /// Another operation takes the child's place: the same work made again, or other work with such a result.
    ///
    /// It becomes a child of the group in the place of the one that failed. A group as well, if it takes several.
    public static func operation<Failure>(_ other: TypedOperation<Value, Failure>) -> ChildRecovery {
        ChildRecovery(answer: .operation(other, { other.outcome?.result.map { StandIn($0) } }))
    }

    /// The child has failed, and the group is told so.
    public static var fail: ChildRecovery { ChildRecovery(answer: .fail(nil)) }
}

/// The answer of a recovery whose type is not known.
enum RecoveryAnswer: Sendable {
    case result(any AnyStandIn)
    case operation(ManagedOperation, _ result: @Sendable () -> (any AnyStandIn)?)
    /// With what the recovery itself threw.
    case fail((any Error)?)
}

/// The result that a child did not give, and that its group takes for it.
final class StandIn<Value: Sendable>: AnyStandIn {
    let value: Value

    init(_ value: Value) { self.value = value }
}

/// A result of whatever type.
protocol AnyStandIn: AnyObject, Sendable {}

extension TypedOperation {
    /// How the operation ended as its group sees it: what a recovery gave takes the place of a result.
    final var outcomeInGroup: OperationOutcome<ResultType, ErrorType>? {
        guard let outcome else { return nil }
        if case .success = outcome { return outcome }
        let standIn = core.withLock { $0.extras?.standIn } as? StandIn<ResultType>
        return standIn.map { .success($0.value) } ?? outcome
    }
}

/// A child that gave no result, as a recovery sees it: before its group does.
public struct FailedChild<Value: Sendable>: Sendable {
    /// The child itself, which has ended.
    public let operation: ManagedOperation
    /// Its error, or why it was cancelled; from the second time on, that of the operation that last took its place.
    public let failure: OperationFailure<any Error>
    /// How often a recovery was asked for this child, this time included.
    public let attempt: Int

    /// The operation's name, or else that of its type.
    public var name: String { operation.life.displayName }

    /// The error, if it is one of that type.
    public func error<Wanted: Error>(as type: Wanted.Type = Wanted.self) -> Wanted? {
        failure.underlyingError as? Wanted
    }
}

// What may be done about a child that gave no result.
extension GroupOperation {
    /// Asks `hook` about each child of that result type that gives no result, before the policy or the body learns of
    /// it.
    ///
    /// It may give the result itself, let another operation take the child's place, or let it fail:
    ///
    /// ```swift
    /// let load = TaskOperation { () async throws -> Int in throw CancellationError() }
    /// let sizes = GroupOperation.all([load])
    /// sizes.recover(atMost: 3) { (failed: FailedChild<Int>) in
    ///     failed.attempt < 3 ? .operation(TaskOperation { 7 }) : .result(0)
    /// }
    /// ```
    ///
    /// The hook may wait, for as long as it takes: the child takes up no place meanwhile, and the group does not end.
    /// It is called in a task of its own, which is cancelled with the group; what it says after that is dropped, and
    /// not waited for. It is not asked about a child that was cancelled with the group, or because of what it depends
    /// on. What depends on the child itself is told of the child's own end, not of the recovery.
    ///
    /// Of several hooks the one given with the child is asked, or else the first that was added and fits.
    ///
    /// - Parameters:
    ///   - limit: How often it is asked for one child: again each time that what took the child's place gave no result.
    ///   - hook: What to do. If it throws, the child has failed, and ``GroupFailure/Child/recoveryFailure`` says so.
    public func recover<Value: Sendable>(
        atMost limit: Int = 1, _ hook: @escaping @Sendable (FailedChild<Value>) async throws -> ChildRecovery<Value>
    ) {
        engine.add(RecoveryHook(limit: limit, hook))
    }
}

extension GroupScope {
    /// Runs a child and gives its result, or what `hook` makes of its failure.
    ///
    /// The error that is thrown is the child's own, if it could not be recovered. About what is somebody else's, and
    /// only awaited, the hook is not asked. All else is as in ``GroupOperation/recover(atMost:_:)``.
    public func run<ResultType, ErrorType>(
        _ child: TypedOperation<ResultType, ErrorType>, weight: Double = 1, recoveringAtMost limit: Int = 1,
        by hook: @escaping @Sendable (FailedChild<ResultType>) async throws -> ChildRecovery<ResultType>
    ) async throws(OperationFailure<ErrorType>) -> ResultType {
        try await outcome(of: child, terms: ChildTerms(weight: weight, hook: RecoveryHook(limit: limit, hook))).get()
    }

    /// Runs a child while the calling thread waits, and gives its result, or what `hook` makes of its failure.
    @available(*, noasync, message: "Use run(_:weight:recoveringAtMost:by:) in an async body: this blocks the thread.")
    public func perform<ResultType, ErrorType>(
        _ child: TypedOperation<ResultType, ErrorType>, weight: Double = 1, recoveringAtMost limit: Int = 1,
        by hook: @escaping @Sendable (FailedChild<ResultType>) async throws -> ChildRecovery<ResultType>
    ) throws(OperationFailure<ErrorType>) -> ResultType {
        try outcomeOnThread(of: child, terms: ChildTerms(weight: weight, hook: RecoveryHook(limit: limit, hook))).get()
    }
}

// Children that gave no result, and for which there may be a way out.
extension GroupEngine {
    /// Adds a hook for all children that it fits.
    func add(_ hook: RecoveryHook) {
        state.withLock { state in
            var recoveries = state.recoveries ?? GroupRecoveries()
            recoveries.hooks.append(hook)
            state.recoveries = recoveries
        }
    }

    /// A child ended without a result, or one that took the place of another ended in whatever way.
    ///
    /// - Returns: Whether its end is told later, when it was recovered or not.
    func recover(
        _ child: ManagedOperation, _ slot: GroupMachine.Slot, _ tag: Int32, _ ending: LifecycleMachine.Ending
    ) -> Bool {
        guard let recoveries = state.withLock({ $0.recoveries }) else { return false }
        if tag == GroupRescue.tag, let rescue = recoveries.running[slot] {
            replacementDidEnd(child, ending, rescue)
            return true
        }
        guard let hook = recoveries.hook(for: child, at: slot), let failure = failure(of: child, tag, ending),
            !failure.failure.isNotForRecovery
        else { return false }
        return begin(GroupRescue(child, (slot, tag), ending, failure, hook), failure.failure)
    }

    /// The child is out of the way; its hook is asked.
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
        withExtendedLifetime(ended) {}
        // Doomed meanwhile, it is over, and nobody is asked.
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
        case .result(let standIn): conclude(rescue, with: standIn)
        case .fail(let error): conclude(rescue, after: error.map { .failed($0) })
        case .operation(let other, let result):
            rescue.keep(result)
            if let error = replace(rescue, by: other) { conclude(rescue, after: .failed(error)) }
        }
    }

    /// Another operation takes the place of the child; returns why not.
    private func replace(_ rescue: GroupRescue, by other: ManagedOperation) -> GroupError? {
        // Outside the lock: it asks Foundation.
        if other.isHeldByQueue(isByQueue: false) { return GroupError(.inQueue, other) }
        let answer = nest(other) {
            state.withLock { state in
                // Doomed meanwhile: the answer comes too late, and nobody asks for the reason.
                guard state.recoveries?.running[rescue.slot] === rescue else { return .refused(.ended) }
                return other.core.withLock { core in
                    if let code = core.reasonAgainstGroup { return .refused(code) }
                    let isReady = !state.machine.asksForReadiness || core.isReadyOrListens(for: other)
                    guard state.machine.replace(rescue.slot, isReady: isReady) else { return .refused(.ended) }
                    (core.parent, core.parentSlot, core.parentTag) = (self, rescue.slot, GroupRescue.tag)
                    core.noteAdded(other)
                    state.children[Int(rescue.slot)].operation = other
                    return .taken
                }
            }
        }
        if case .refused(let code) = answer { return GroupError(code, other) }
        beginMeasuring(other)
        apply { _ in }
        return nil
    }

    private func replacementDidEnd(
        _ other: ManagedOperation, _ ending: LifecycleMachine.Ending, _ rescue: GroupRescue
    ) {
        if ending == .success, let standIn = rescue.result { return conclude(rescue, with: standIn) }
        let failure = failure(of: other, -1, ending)?.failure
        if let failure, rescue.mayAskAgain, begin(rescue, failure) { return }
        conclude(rescue, after: failure)
    }

    /// The child counts as one that gave that result.
    private func conclude(_ rescue: GroupRescue, with standIn: any AnyStandIn) {
        guard end(rescue) else { return }
        let old = rescue.original.core.withLock { core in exchange(&core.need().standIn, with: standIn) }
        withExtendedLifetime(old) {}
        ThreadWorklist.perform { self.settle(rescue.original, rescue.slot, rescue.tag, .success, nil) }
    }

    /// The child could not be recovered.
    private func conclude(_ rescue: GroupRescue, after failure: OperationFailure<any Error>?) {
        if end(rescue) { tellFailure(of: rescue, after: failure) }
    }

    /// Nobody waits any more for the child there; returns what is to be cancelled for that.
    func giveUp(_ child: ManagedOperation, at slot: GroupMachine.Slot) -> ManagedOperation? {
        var abandoned: GroupRescue?
        let standIn = state.withLock { state -> ManagedOperation? in
            guard state.children.indices.contains(Int(slot)) else { return nil }
            guard let rescue = state.recoveries?.running[slot], rescue.original.life === child.life else {
                // It may have just ended: it is not recovered then.
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
        return standIn
    }

    /// The group is doomed, and the child with it.
    func abandon(_ rescue: GroupRescue) {
        rescue.end()
        tellFailure(of: rescue, after: nil)
    }

    private func tellFailure(of rescue: GroupRescue, after recoveryFailure: OperationFailure<any Error>?) {
        let failure = rescue.failure.adding(recoveryFailure)
        ThreadWorklist.perform { self.settle(rescue.original, rescue.slot, rescue.tag, rescue.ending, failure) }
    }

    /// Whether the recovery ends here and now; if not, it was over before.
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
    /// Whether nobody wants a result any more, or the group could not wait for one.
    fileprivate var isNotForRecovery: Bool {
        guard let code = cancellation?.code else { return false }
        return followsFromDependency || code == .taskCancelled || code == .tooManyWaits
    }

    /// Whether it is the mere consequence of what another operation did.
    var followsFromDependency: Bool {
        guard let code = cancellation?.code else { return false }
        return code == .dependencyFailed || code == .dependencyCancelled
    }
}

extension GroupEngine.State {
    /// Sets a hook for the child that has just been taken.
    mutating func setHook(_ hook: RecoveryHook, at slot: GroupMachine.Slot) {
        if recoveries == nil { recoveries = GroupRecoveries() }
        recoveries?.own[slot] = hook
    }

    /// The recoveries of children that are doomed, which end.
    mutating func takeRescues(at slots: [GroupMachine.Slot]) -> [GroupRescue] {
        guard recoveries?.running.isEmpty == false else { return [] }
        return slots.compactMap { slot in
            machine.isRecovering(slot) ? recoveries?.running.removeValue(forKey: slot) : nil
        }
    }
}

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
