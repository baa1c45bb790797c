// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

// How far the group has come.
extension GroupOperation {
    /// How far the children have come, each by the weight with which it was added.
    ///
    /// A child that ended, in whatever way, counts whole. One that runs counts by the share that it says is done:
    /// groups and each ``MeasuredOperation`` do, such as network and file operations, and so does an operation that is
    /// mapped from one of them (`mapError` and its relatives). Others count nothing before their end.
    ///
    /// The fraction never runs backwards while no child is added: say with ``expect(totalWeight:)`` what is to come.
    /// With the group's result it is one; after a failure or a cancellation it stays where it was.
    ///
    /// It is kept from the first time on that somebody asks, and costs nothing before.
    public var groupProgress: GroupProgress { engine.progress }

    /// Called as the children come along, on `callbackQueue`; never after a cancellation.
    ///
    /// Its last call before a success is complete, and comes before the handler of the result. Let go of with the end.
    public var groupProgressHandler: (@Sendable (GroupProgress) -> Void)? {
        get { engine.state.withLock { $0.teller }?.handler }
        set {
            guard let teller = needTeller() else { return }
            teller.handler = newValue
        }
    }

    /// Adds a closure that is called on the main actor as the children come along, whatever the `callbackQueue` is.
    ///
    /// It is called beside ``groupProgressHandler``, with the same promises: never after a cancellation, and with the complete
    /// progress before the handlers of a result. Each call of this method adds a closure and replaces none.
    @discardableResult
    public func onMainActor(progress handler: @escaping @MainActor (GroupProgress) -> Void) -> Self {
        needTeller(isOnMainActor: true)?.add(handler)
        return self
    }

    /// The progress for Foundation, to be shown or to be hung into a tree of others; ask for it before the end.
    ///
    /// It is kept on the callback queue, counts ten-thousandths of the fraction, and cancels, suspends and resumes the
    /// group. It never runs backwards: where children are added it stays until the fraction is that large again.
    public var progress: Progress {
        guard let teller = needTeller() else { return makeProgress() }
        let progress = teller.foundation(makeProgress)
        // What came between the two was told to nobody.
        teller.note(engine)
        return progress
    }

    /// Says how much weight the children will have in all, where they are added one after the other.
    ///
    /// If more is added, that counts. A map expects as many children as its elements say that there are.
    public func expect(totalWeight weight: Double) { engine.expect(weight) }

    private func makeProgress() -> Progress {
        // Not a part of one that happens to be current on this thread.
        let made = Progress(parent: nil)
        made.totalUnitCount = GroupProgressTeller.units
        GroupProgressTeller.show(engine.progress, in: made)
        made.isPausable = true
        made.cancellationHandler = { [weak self] in self?.cancel() }
        made.pausingHandler = { [weak self] in _ = self?.suspend() }
        made.resumingHandler = { [weak self] in _ = self?.resume() }
        return made
    }

    private func needTeller(isOnMainActor: Bool = false) -> GroupProgressTeller? {
        // Only what comes after this is news.
        let made = GroupProgressTeller(told: engine.progress) { [weak self] in
            guard let self, !isCancelled else { return nil }
            return (isOnMainActor ? .main : callbackQueue, self)
        }
        return engine.state.withLock { state in
            if state.machine.isOver { return nil }
            let teller = (isOnMainActor ? state.mainActorTeller : state.teller) ?? made
            if isOnMainActor { state.mainActorTeller = teller } else { state.teller = teller }
            return teller
        }
    }
}

extension GroupScope {
    /// Says how much weight the children will have in all, for the progress of the group.
    public func expect(totalWeight weight: Double) { engine.expect(weight) }
}

extension GroupEngine {
    func expect(_ weight: Double) {
        let isOn = state.withLock { state in
            state.meter.expect(weight)
            return state.meter.isOn
        }
        if isOn { tellProgress() }
    }
}
