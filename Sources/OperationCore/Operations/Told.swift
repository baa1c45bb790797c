// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What is to be told after the lock was given back.
struct Told {
    var isTold = false
    var hasHandlers = false
    /// Whether there are mapped operations that convert the outcome.
    var hasMaps = false
    var parties: Parties?

    /// Whom to tell beside the handlers; most operations have nobody.
    final class Parties {
        var waiters: [OutcomeObserver] = []
        var observers: [OutcomeObserver] = []
        var timers = OperationTimers()
        /// What would have fed a body that will not run, to be let go of.
        var inputs: [DependencyInput] = []
    }
}

extension ManagedOperation.Core {
    /// Takes out those who must be told of what was just decided: only to be called by who decided it.
    func takeTold() -> Told {
        guard machine.ending != nil else { return Told() }
        let isTold = machine.isTold
        let hasMaps = isTold && extras?.maps?.hasUntold == true
        if hasMaps { _ = extras?.maps?.telling.request() }
        guard let extras, extras.timing != nil || !extras.observers.isEmpty || !extras.inputs.isEmpty else {
            return Told(isTold: isTold, hasHandlers: hasHandlers, hasMaps: hasMaps)
        }
        let parties = Told.Parties()
        parties.inputs = extras.inputs.takeAll()
        if extras.timing != nil { parties.timers = extras.timed { $0.takeTimers() } }
        parties.waiters = extras.observers.takeAll(where: \.isWaiter)
        if isTold {
            parties.observers = extras.observers.takeAll()
            _ = extras.telling.request()
        }
        return Told(isTold: isTold, hasHandlers: hasHandlers, hasMaps: hasMaps, parties: parties)
    }
}
