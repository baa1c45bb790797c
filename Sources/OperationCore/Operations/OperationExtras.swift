// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What only some operations have.
///
/// Made when it is first needed, given away whole when the operation ends.
///
/// Not Sendable on purpose: it is only touched under the lock of its operation, and afterwards by the one thread that
/// ended the operation.
final class OperationExtras {
    /// Told with the outcome, in the order in which they came.
    var observers = ForgettingList<OutcomeObserver>()
    /// Whether a thread is telling the observers.
    ///
    /// It also tells those that are added meanwhile.
    var telling = RepeatFlag()
    /// Consumers of the operation's states.
    var feeds = ForgettingList<StateFeed>()
    /// What feeds results of dependencies into the operation, called just before its body.
    var inputs = ForgettingList<DependencyInput>()
    /// Called when the operation ended, after its dependents were released.
    var endActions = ForgettingList<@Sendable () -> Void>()
    var completionBlock: (@Sendable () -> Void)?
    var timing: OperationTiming?
    var admission: OperationAdmission?
    var suspension = SuspensionHooks()
    /// The operations for which the threads of its body wait.
    var bodyWaits: [ManagedOperation] = []
    /// What it waits for in the middle of its work.
    var wait: OperationWait?
    /// The last of its waits that is over.
    var lastWait: UInt32 = 0
    /// That the operation belongs to an owner.
    var membership: OwnerMembership?
    /// Keeps the operation alive until it ended.
    var selfReference: ManagedOperation?
    /// The result that its group takes for its own, since it gave none.
    var standIn: (any AnyStandIn)?
    /// The context of the task that called `run()`, until the body begins.
    var taskContext: TaskContext?
    var lastObserverID: UInt64 = 0
    /// The operations that are mapped from it.
    var maps: MapRecords?
    /// Whether the start of the body needs nothing but to run it.
    var isPlainAtStart: Bool { timing == nil && admission == nil && inputs.isEmpty }
    var readiness = ReadinessReports()
}

extension OperationExtras {
    func takeTaskContext() -> TaskContext? { exchange(&taskContext, with: nil) }

    /// What can still be read when the operation has ended; nil for most.
    var remains: OperationExtras? {
        let kept = admission.flatMap { admission in
            admission.throttle == nil && admission.categories.isEmpty
                ? nil : OperationAdmission(categories: admission.categories, throttle: admission.throttle)
        }
        guard kept != nil || membership != nil else { return nil }
        let remains = OperationExtras()
        (remains.admission, remains.membership) = (kept, membership)
        return remains
    }

    /// Lets go of the closures that nobody will call, for an operation that is being freed.
    ///
    /// Each may hold another operation, and that one another.
    func letGoOfClosures() {
        if !observers.isEmpty { ThreadWorklist.letGo(exchange(&observers, with: ForgettingList())) }
        if !inputs.isEmpty { ThreadWorklist.letGo(exchange(&inputs, with: ForgettingList())) }
        if !endActions.isEmpty { ThreadWorklist.letGo(exchange(&endActions, with: ForgettingList())) }
        if completionBlock != nil { ThreadWorklist.letGo(exchange(&completionBlock, with: nil)) }
        if standIn != nil { ThreadWorklist.letGo(exchange(&standIn, with: nil)) }
    }
}

extension ManagedOperation.Core {
    mutating func setCompletion(_ block: inout (@Sendable () -> Void)?) {
        if block != nil || extras != nil { swap(&need().completionBlock, &block) }
    }

    /// Returns the extras, and makes them if there are none.
    mutating func need() -> OperationExtras {
        if let extras { return extras }
        let made = OperationExtras()
        extras = made
        return made
    }
}

/// Somebody who wants to know the outcome.
struct OutcomeObserver {
    /// Waiters learn of the outcome when it is decided, the others when the operation's handlers are called.
    let isWaiter: Bool
    /// Called outside every lock with the operation whose outcome it reads.
    ///
    /// It hands over to a queue or a task at once.
    let tell: @Sendable (ManagedOperation) -> Void
}
