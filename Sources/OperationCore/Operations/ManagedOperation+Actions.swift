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
    static func abandon(_ extras: OperationExtras) {
        extras.giveBackAdmission()
        extras.timing?.takeTimers().cancel()
        for feed in extras.feeds.elements { feed.end() }
    }
}

/// What an ended operation leaves to be settled.
struct Remains {
    var extras: OperationExtras?
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
