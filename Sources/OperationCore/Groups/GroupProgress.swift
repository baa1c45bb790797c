// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// How far the children of a group have come, each by its weight.
public struct GroupProgress: Sendable, Hashable, CustomStringConvertible {
    /// The weights of the children that ended, in whatever way, and of those that run the share that is done.
    public let completedWeight: Double
    /// The weights of all children that were added, or what was expected if that is more.
    public let totalWeight: Double

    /// Makes one, for tests of your own code.
    public init(completedWeight: Double, totalWeight: Double) {
        self.completedWeight = completedWeight
        self.totalWeight = totalWeight
    }

    /// The share that is done, from zero to one; zero while there is no child.
    public var fraction: Double {
        let share = completedWeight / totalWeight
        // What is no number is not above zero.
        return totalWeight > 0 && share > 0 ? min(share, 1) : 0
    }

    /// `37 % of 4.0`.
    public var description: String { "\(Int(fraction * 100)) % of \(totalWeight)" }
}

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

/// Tells the listeners of a group of its progress, on its callback queue, one report at a time.
///
/// A queue that is slow gets fewer reports, not a pile of them: at most one waits there, and it tells what is true when
/// its turn comes.
final class GroupProgressTeller: Sendable {
    private struct State {
        var handler: (@Sendable (GroupProgress) -> Void)?
        /// Called after the handler, in their order.
        var mainActorHandlers: [@MainActor (GroupProgress) -> Void] = []
        var foundation: Progress?
        var told: GroupProgress
        /// Whether a turn on the callback queue is scheduled or running.
        ///
        /// A change during a turn leads to another one.
        var turns = RepeatFlag()
        /// Whether nothing follows, and the handler of the result comes next.
        var isLast = false
        /// Whether a thread brings Foundation's progress up to date.
        var showing = RepeatFlag()
    }

    private let state: Locked<State>
    /// The callback queue, and the group; nil once nothing is to be told any more.
    private let queue: @Sendable () -> (DispatchQueue, ManagedOperation)?

    init(told: GroupProgress, queue: @escaping @Sendable () -> (DispatchQueue, ManagedOperation)?) {
        state = Locked(State(told: told))
        self.queue = queue
    }

    var handler: (@Sendable (GroupProgress) -> Void)? {
        get { state.withLock { $0.handler } }
        set {
            let old = state.withLock { exchange(&$0.handler, with: newValue) }
            withExtendedLifetime(old) {}
        }
    }

    /// Adds a handler for a teller whose queue is the main queue.
    func add(_ handler: @escaping @MainActor (GroupProgress) -> Void) {
        state.withLock { $0.mainActorHandlers.append(handler) }
    }

    /// Foundation's progress, made now if there was none.
    func foundation(_ make: () -> Progress) -> Progress {
        if let known = state.withLock({ $0.foundation }) { return known }
        let made = make()
        return state.withLock { state in
            let known = state.foundation ?? made
            state.foundation = known
            return known
        }
    }

    /// Something changed.
    func note(_ engine: GroupEngine, isLast: Bool = false) {
        let begins: Bool? = state.withLock { state in
            guard state.handler != nil || state.foundation != nil || !state.mainActorHandlers.isEmpty else {
                return nil
            }
            if isLast { state.isLast = true }
            return state.turns.request()
        }
        switch begins {
        case true?: schedule { [self] in takeTurns(engine) }
        // The scheduled turn may run after the handler of the result, so the last report gets a turn of its own.
        case false? where isLast: schedule { [self] in tell(engine) }
        case false?, nil: break
        }
    }

    private func schedule(_ turn: @escaping @Sendable () -> Void) {
        guard let (queue, group) = queue() else { return }
        // The group lives until its listeners were told.
        group.enqueueBeforeOutcome(on: queue) { withExtendedLifetime(group) { turn() } }
    }

    private func takeTurns(_ engine: GroupEngine) {
        state.withLock { $0.turns.startRound() }
        tell(engine)
        while true {
            let (goesOn, isLast) = state.withLock { ($0.turns.finishRound(), $0.isLast) }
            guard goesOn else { return }
            // The next turn goes to the end of the queue, because under a flood of changes this one would never end.
            guard isLast else { return schedule { [self] in takeTurns(engine) } }
            tell(engine)
        }
    }

    private func tell(_ engine: GroupEngine) {
        let progress = engine.state.withLock { $0.meter.progress }
        let (handler, mainActorHandlers, foundation) = state.withLock { state in
            // On a concurrent queue a turn that read the progress before the end may come here after the last report.
            let isOutdated = state.isLast && progress.completedWeight < progress.totalWeight
            let isNews = !isOutdated && state.told != progress
            if isNews { state.told = progress }
            return isNews ? (state.handler, state.mainActorHandlers, state.foundation) : (nil, [], nil)
        }
        // No word after a cancellation.
        if queue() != nil {
            handler?(progress)
            if !mainActorHandlers.isEmpty {
                MainActor.assumeIsolated { for handler in mainActorHandlers { handler(progress) } }
            }
            if let foundation {
                // One thread at a time, so that it does not run backwards on a concurrent queue.
                state.runRounds(of: \.showing) { Self.show(state.withLock { $0.told }, in: foundation) }
            }
        }
    }

    /// In ten-thousandths, which never run backwards.
    static let units: Int64 = 10_000

    static func show(_ progress: GroupProgress, in foundation: Progress) {
        let done = Int64(progress.fraction * Double(units))
        if done > foundation.completedUnitCount { foundation.completedUnitCount = done }
    }
}

/// Adds up how far the children of a group have come: a pure value.
///
/// What it takes to begin late is counted always; all else only from the moment in which somebody asks.
package struct GroupMeter: Sendable {
    private var added = 0.0
    private var ended = 0.0
    /// The number of children that have not ended.
    private var openCount = 0
    private var expected = 0.0
    /// Whether a sequence may bring more children, of which the number is not known: then one more is expected.
    package var isOpen = false
    /// The weights other than one, of children that have not ended.
    private var weights: [GroupMachine.Slot: Double] = [:]
    /// Whether somebody asked.
    package var isOn = false
    /// How far the children are that run, as far as they say.
    private var marks: [GroupMachine.Slot: Double] = [:]
    /// The sum of the marks, each by its weight.
    private var partial = 0.0
    private var isComplete = false
    /// What was done when the group failed or was cancelled: what is cancelled with it is no progress.
    private var frozen: Double?
    /// What the group around it was told.
    private var told = 0.0

    package init() {}

    /// A weight that can be added up: what is no number, or below zero, counts nothing.
    private static func usable(_ weight: Double) -> Double { weight > 0 ? min(weight, 1e15) : 0 }

    /// A child was added.
    package mutating func add(_ slot: GroupMachine.Slot, weight: Double) {
        let weight = weight == 1 ? 1 : Self.usable(weight)
        added += weight
        openCount += 1
        if weight != 1 { weights[slot] = weight }
    }

    /// So much will be added in all.
    package mutating func expect(_ weight: Double) { expected = Self.usable(weight) }

    /// The child ended.
    package mutating func end(_ slot: GroupMachine.Slot) {
        let weight = weights.isEmpty ? 1 : weights.removeValue(forKey: slot) ?? 1
        ended += weight
        openCount -= 1
        // The weights were added in another order, so the sums may differ by what was rounded.
        if openCount == 0 { ended = added }
        if marks.isEmpty { return }
        if let mark = marks.removeValue(forKey: slot) { partial -= mark * weight }
        // Nothing is left of what rounding may have left over.
        if marks.isEmpty { partial = 0 }
    }

    /// The child has come so far, or farther: it never runs backwards.
    ///
    /// - Returns: Whether that is news.
    package mutating func mark(_ slot: GroupMachine.Slot, _ fraction: Double) -> Bool {
        let old = marks[slot] ?? 0
        guard isOn, fraction > old else { return false }
        let new = min(fraction, 1)
        marks[slot] = new
        partial += (new - old) * (weights[slot] ?? 1)
        return new > old
    }

    /// The group has its result: nothing is left to do.
    package mutating func complete() { isComplete = true }

    /// The children are to be cancelled: unless there is a result after all, it stays as it is.
    package mutating func freeze() { if frozen == nil { frozen = ended + partial } }

    package var progress: GroupProgress {
        let total = isOpen && expected == 0 ? added + 1 : max(added, expected)
        return GroupProgress(
            completedWeight: isComplete ? total : min(frozen ?? ended + partial, total), totalWeight: total)
    }

    /// What the group around it is to be told: not each little step, for there may be many groups around that.
    package mutating func takeNews() -> Double? {
        let fraction = progress.fraction
        guard fraction - told >= 0.001 || fraction == 1 && told < 1 else { return nil }
        told = fraction
        return fraction
    }
}

/// An operation that knows how far it has come, so that the progress of its group moves before its end.
///
/// Network and file operations conform. Your own does with one property and one call:
///
/// ```swift
/// final class Import: AsyncOperation<Int, Never>, MeasuredOperation, @unchecked Sendable {
///     var completedFraction: Double? { 0.5 }
///
///     override func main() {
///         completedFractionDidChange()
///         finish(withResult: 1)
///     }
/// }
/// ```
public protocol MeasuredOperation: ManagedOperation {
    /// The share of its work that is done, from zero to one; nil while nobody knows.
    ///
    /// Read on any thread, outside every lock of the package.
    var completedFraction: Double? { get }
}

extension MeasuredOperation {
    /// Tells the group whose child the operation is that ``completedFraction`` has changed.
    ///
    /// Call it outside your own locks. It does nothing where nobody asked the group for its progress.
    public func completedFractionDidChange() { fractionDidChange { completedFraction } }
}

extension ManagedOperation {
    /// Tells its group how far it has come, if that wants to know.
    package final func fractionDidChange(_ fraction: () -> Double?) {
        let (parent, slot) = core.withLock { ($0.parent, $0.parentSlot) }
        guard let parent, parent.isMeasuring, let fraction = fraction() else { return }
        parent.childDidAdvance(self, slot, to: fraction)
    }
}

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
