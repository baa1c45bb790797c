// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// How far the children have come.
extension GroupEngine {
    /// Whether somebody asked this group, or one around it, for its progress.
    var isMeasuring: Bool { state.withLock { $0.meter.isOn } }

    /// The progress; from the first call on it is kept, here and in all groups beneath.
    var progress: GroupProgress {
        beginMeasuring()
        return state.withLock { $0.meter.progress }
    }

    /// Begins to keep the progress, in a loop and not in a recursion.
    func beginMeasuring() {
        var begun: [GroupEngine] = []
        var next = [self]
        while let engine = next.popLast() {
            let children = engine.state.withLock { state -> [ManagedOperation]? in
                if exchange(&state.meter.isOn, with: true) { return nil }
                return state.children.compactMap(\.operation)
            }
            guard let children else { continue }
            begun.append(engine)
            for child in children {
                if let inner = child.groupEngine { next.append(inner) }
                if let measured = child.life as? any MeasuredOperation { measured.completedFractionDidChange() }
            }
        }
        // What ended before goes up, from the innermost ones outwards.
        for engine in begun.reversed() { engine.tellProgress() }
    }

    /// What was added is a group, which is to tell of its progress if this one does.
    func beginMeasuring(_ child: ManagedOperation) {
        if let inner = child.groupEngine, isMeasuring { inner.beginMeasuring() }
    }

    /// A child says how far it has come.
    func childDidAdvance(_ child: ManagedOperation, _ slot: GroupMachine.Slot, to fraction: Double) {
        let isNews = state.withLock { state in
            // Another may have its place by now.
            guard state.children.indices.contains(Int(slot)), state.children[Int(slot)].operation?.life === child else {
                return false
            }
            return state.meter.mark(slot, fraction)
        }
        if isNews { tellProgress() }
    }

    /// Tells those who listen, here and in the groups around.
    func tellProgress() {
        var next: GroupEngine? = self
        while let engine = next {
            let (teller, mainActorTeller, operation, news) = engine.state.withLock { state in
                let news = state.meter.isOn ? state.meter.takeNews() : nil
                return (state.teller, state.mainActorTeller, state.operation, news)
            }
            teller?.note(engine)
            mainActorTeller?.note(engine)
            next = nil
            guard let operation, let news else { return }
            let (outer, slot) = operation.core.withLock { ($0.parent, $0.parentSlot) }
            let isNews = outer?.state.withLock { state in
                state.children.indices.contains(Int(slot)) && state.children[Int(slot)].operation?.life === operation
                    && state.meter.mark(slot, news)
            }
            if isNews == true { next = outer }
        }
    }

    /// The group has its result; its handlers for that come after this.
    func completeProgress(_ tellers: [GroupProgressTeller]) {
        let isOn = state.withLock { state in
            state.meter.complete()
            return state.meter.isOn
        }
        guard isOn else { return }
        for teller in tellers { teller.note(self, isLast: true) }
    }
}
