// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What is to be told after the lock was given back.
struct Told {
    var isTold = false
    var hasHandlers = false
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
        guard let extras, extras.timing != nil || !extras.observers.isEmpty || !extras.inputs.isEmpty else {
            return Told(isTold: isTold, hasHandlers: hasHandlers)
        }
        let parties = Told.Parties()
        parties.inputs = exchange(&extras.inputs, with: [])
        if extras.timing != nil { parties.timers = extras.timed { $0.takeTimers() } }
        parties.waiters = extras.observers.filter(\.isWaiter)
        if isTold {
            parties.observers = extras.observers.filter { !$0.isWaiter }
            extras.isTelling = true
        }
        extras.observers.removeAll { $0.isWaiter || isTold }
        return Told(isTold: isTold, hasHandlers: hasHandlers, parties: parties)
    }
}
