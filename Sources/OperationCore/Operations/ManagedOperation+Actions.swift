// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

// The shell of LifecycleMachine, second half: what its events ask for, performed when the lock was given back.
extension ManagedOperation {
    func perform(_ action: LifecycleMachine.StartAction) {
        switch action {
        case .run:
            signalExecuting()
            beginTimeout()
            feedInputs()
            // An input, or the clock on which the timeout was set, may have ended it.
            let (begins, context) = core.withLock { ($0.noteBodyBegins(), $0.extras?.takeTaskContext()) }
            if !begins {
                bodyDidReturn()
            } else if let context {
                context.perform { [self] in runBody() }
            } else {
                runBody()
            }
        case .takeTurn: DispatchQueue.global().async { [self] in turnDidCome() }
        case .awaitDependencies, .awaitTelling: break
        case .seekAdmission: seekAdmissionAtStart()
        case .delay: beginDelay()
        case .tellAndEnd:
            tell(core.withLock { $0.takeTold() })
            end()
        case .end: end()
        case .resume: tellBodyOfSuspension()
        case .refuse: reportSecondStart()
        }
    }

    /// Brings timeout and body into line with the state, until they are.
    func tellBodyOfSuspension() {
        while let step = core.withLock({ $0.nextStepOfSuspension() }) {
            step.isSuspended ? pauseTimeout() : resumeTimeout()
            if step.tellsBody { setBodySuspended(step.isSuspended) }
            core.withLock { $0.extras?.suspension.finishTelling() }
        }
    }

    private func feedInputs() {
        let inputs = core.withLock { core in
            core.extras?.inputs.takeAll() ?? []
        }
        for input in inputs {
            guard !input.isBroken else {
                cancelIfUndecided(because: .inputMissing)
                continue
            }
            BodyWait.within(self) { input.feed(self) }
        }
    }

    /// Tells whom it concerns what was decided.
    func tell(_ told: Told) {
        if let parties = told.parties {
            parties.timers.cancel()
            for waiter in parties.waiters { waiter.tell(self) }
        }
        guard told.isTold else { return }
        if told.hasHandlers { callHandlers() }
        if let parties = told.parties {
            for observer in parties.observers { observer.tell(self) }
            tellLateObservers()
        }
        if told.hasMaps { tellMaps() }
        releaseBody()
    }

    /// Tells those who came while others were told, so that all are told in the order in which they came.
    private func tellLateObservers() {
        while true {
            let late = storage.withLock { core -> [OutcomeObserver] in
                guard let extras = core.extras else { return [] }
                if extras.observers.isEmpty { extras.telling.stop() }
                return extras.observers.takeAll()
            }
            if late.isEmpty { return }
            for observer in late { observer.tell(self) }
        }
    }

    /// Signals the end: to Foundation, then to the queue, dependents, waiting threads and the completion block.
    func end() {
        if OperationDefaults.mayInherit { keepCallbackQueue() }
        var remains = Remains()
        let didEnd = signalEnd {
            core.withLock { core in
                remains = core.takeRemains()
                return core.machine.end()
            }
        }
        guard didEnd else { return }
        if let maps = remains.extras?.maps { signalEnd(of: maps) }
        if let membership = remains.membership { OwnerRegistry.shared.withdraw(membership) }
        if let host = remains.host { host.didEnd(remains.slot, remains.ending) }
        guard !remains.isEmpty else { return }
        if ThreadWorklist.begin() {
            Self.settle(&remains, of: self)
            ThreadWorklist.finish()
        } else {
            // Nobody waits for an operation that is cancelled by its own `deinit`, and nothing may hold it any more.
            let isNeeded =
                remains.parent != nil || remains.extras?.completionBlock != nil
                || remains.node?.hasLiveDownstream == true
            ThreadWorklist.later { [operation = isNeeded ? self : nil, remains] in
                var remains = remains
                Self.settle(&remains, of: operation)
            }
        }
    }

    private static func settle(_ remains: inout Remains, of operation: ManagedOperation?) {
        remains.extras?.giveBackAdmission()
        if let operation { remains.node?.releaseDownstream(of: operation) }
        if let extras = remains.extras {
            for action in extras.endActions.takeAll() { action() }
            operation?.runCompletion(exchange(&extras.completionBlock, with: nil))
            if let maps = extras.maps { runCompletions(of: maps) }
            abandon(extras)
        }
        // Inside the worklist: what is freed by this frees what comes before it in a loop.
        remains.node?.tearDown()
        if let operation, let parent = remains.parent {
            let child = remains.extras?.maps?.added?.mapped ?? operation
            parent.childDidEnd(child, remains.parentSlot, remains.parentTag, remains.ending)
        }
        remains = Remains()
    }

    final func runCompletion(_ block: (@Sendable () -> Void)?) {
        guard let block else { return }
        // The operation lives until its completion block ran, as it does in Foundation.
        DispatchQueue.global().async { [self] in
            withExtendedLifetime(self) { block() }
        }
    }

    /// Lets go of what an operation held that ended, or that is being freed without having ended.
    static func abandon(_ extras: RareOperationState) {
        extras.giveBackAdmission()
        extras.timing?.takeTimers().cancel()
        for feed in extras.feeds.elements { feed.end() }
    }
}

/// What an ended operation leaves to be settled.
struct Remains {
    var extras: RareOperationState?
    var node: DependencyNode?
    var membership: OwnerMembership?
    var host: QueueEngine?
    var slot: QueueMachine.Slot = -1
    var ending = LifecycleMachine.Ending.success
    var parent: GroupEngine?
    var parentSlot: GroupMachine.Slot = -1
    var parentTag: Int32 = -1

    var isEmpty: Bool { extras == nil && node == nil && parent == nil }
}

extension ManagedOperation.Core {
    fileprivate mutating func nextStepOfSuspension() -> SuspensionHooks.Step? {
        switch machine.state {
        case .suspended:
            let isTimeoutAstray = extras?.timing?.timeoutEnd != nil
            return need().suspension.next(isSuspended: true, isTimeoutAstray: isTimeoutAstray)
        case .executing:
            // Set in a suspension of which nobody was told, the remainder has nobody else to resume it.
            let isTimeoutAstray = extras?.timing?.timeoutRemainder != nil
            return extras?.suspension.next(isSuspended: false, isTimeoutAstray: isTimeoutAstray)
        default: return nil
        }
    }

    mutating func takeRemains() -> Remains {
        node?.noteEndOfOperation()
        // The queue and the group learn how the object ended that they were given, which may be a mapped operation.
        let ending = extras?.maps?.added?.ending ?? machine.ending ?? .cancelled
        return Remains(
            extras: exchange(&extras, with: extras?.remains), node: exchange(&node, with: nil), membership: membership,
            host: exchange(&host, with: nil), slot: slot, ending: ending,
            parent: exchange(&parent, with: nil), parentSlot: parentSlot, parentTag: parentTag)
    }
}

/// Keeps the calls that put a body on hold and let it go on in the order of the changes, one at a time.
///
/// One thread suspends an operation and has still to tell the body; another, or the hook itself, resumes it. Told by
/// both, the body might hear of the resumption first and stay on hold for ever. So only one thread tells it, and looks
/// afterwards whether that is still true.
struct SuspensionHooks {
    private var isBodyOnHold = false
    private var telling = RepeatFlag()

    /// What brings timeout and body into line with the state.
    struct Step {
        let isSuspended: Bool
        /// Whether the body does not know yet; else it is only the timeout that changed while nobody was told.
        let tellsBody: Bool
    }

    /// What the calling thread is to do now; nil if nothing, or if another thread is at it.
    ///
    /// - Parameter isTimeoutAstray: Whether the timeout goes on though the operation is suspended, or the reverse.
    mutating func next(isSuspended: Bool, isTimeoutAstray: Bool) -> Step? {
        let tellsBody = isBodyOnHold != isSuspended
        guard tellsBody || isTimeoutAstray, telling.request() else { return nil }
        isBodyOnHold = isSuspended
        return Step(isSuspended: isSuspended, tellsBody: tellsBody)
    }

    /// Notes that the step is done.
    ///
    /// The thread that did it then asks for the next one.
    mutating func finishTelling() { telling.stop() }
}

/// What only some operations have.
///
/// Made when it is first needed, given away whole when the operation ends.
///
/// Not Sendable on purpose: it is only touched under the lock of its operation, and afterwards by the one thread that
/// ended the operation.
final class RareOperationState {
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
    /// The waits of the threads and the task of its body for other operations.
    var bodyWaits: [NotedWait] = []
    /// What it waits for in the middle of its work.
    var wait: OperationWait?
    /// The last of its waits that is over.
    var lastWait: UInt32 = 0
    /// The operation in whose place of a queue it runs, if it is in none itself.
    weak var placeKeeper: ManagedOperation?
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

extension RareOperationState {
    func takeTaskContext() -> TaskContext? { exchange(&taskContext, with: nil) }

    /// What can still be read when the operation has ended; nil for most.
    var remains: RareOperationState? {
        let kept = admission.flatMap { admission in
            admission.throttle == nil && admission.categories.isEmpty
                ? nil : OperationAdmission(categories: admission.categories, throttle: admission.throttle)
        }
        guard kept != nil || membership != nil else { return nil }
        let remains = RareOperationState()
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
    mutating func need() -> RareOperationState {
        if let extras { return extras }
        let made = RareOperationState()
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
