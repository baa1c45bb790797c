// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The progress of a group, measured with the weights of its children.
public struct GroupProgress: Sendable, Hashable, CustomStringConvertible {
    /// The sum of the weights of all children that have ended and of the completed parts of running children.
    public let completedWeight: Double
    /// The expected total weight or the sum of the weights of all children, whichever is larger.
    public let totalWeight: Double

    /// Creates a progress value for use in your own tests.
    ///
    /// - Parameters:
    ///   - completedWeight: The total weight of the completed work, including the completed parts of running children.
    ///   - totalWeight: The expected total weight or the sum of the weights of all children, whichever is larger.
    public init(completedWeight: Double, totalWeight: Double) {
        self.completedWeight = completedWeight
        self.totalWeight = totalWeight
    }

    /// The fraction of the total weight that is complete, from 0 to 1, or 0 if the total weight is 0.
    public var fraction: Double {
        let share = completedWeight / totalWeight
        // A share that is not a number does not count.
        return totalWeight > 0 && share > 0 ? min(share, 1) : 0
    }

    /// A description of the progress, such as `37% of 4.0`.
    public var description: String { "\(Int(fraction * 100))% of \(totalWeight)" }
}

// The progress of a group.
extension GroupOperation {
    /// The progress of the group, measured with the weights of its children.
    ///
    /// A child that has ended contributes its full weight, regardless of its outcome. A running child contributes its
    /// weight multiplied by the fraction that the child reports. Groups and all ``MeasuredOperation`` objects, such as
    /// network and file operations, report a fraction. Operations that are mapped from these objects, for example with
    /// `mapError`, report the same fraction. Any other child contributes its weight only after it has ended.
    ///
    /// The fraction decreases only if the total weight grows, for example because you add children. To prevent this,
    /// declare the expected total weight with ``expect(totalWeight:)``. When the group has succeeded, the fraction is
    /// one. For this, a group whose children all have the weight 0 then reports the weight 1. After a failure or a
    /// cancellation, the fraction no longer changes.
    public var groupProgress: GroupProgress { engine.progress }

    /// A closure that is called on the `callbackQueue` when the children make progress.
    ///
    /// The default is `nil`. The closure is not called after a cancellation. If the group succeeds, the last call
    /// reports the complete progress before the success handler is called. The group releases the closure when the
    /// group has ended.
    public var groupProgressHandler: (@Sendable (GroupProgress) -> Void)? {
        get { engine.state.withLock { $0.reporter }?.handler }
        set {
            guard let reporter = makeReporterIfNeeded() else { return }
            reporter.handler = newValue
        }
    }

    /// Adds a closure that is called on the main actor when the children make progress, regardless of the
    /// `callbackQueue`.
    ///
    /// The closure is called in addition to ``groupProgressHandler``. The closure is not called after a cancellation.
    /// If the group succeeds, the closure receives the complete progress before the success handlers are called. Each
    /// call to this method adds a closure without replacing earlier ones.
    ///
    /// - Parameter handler: A closure that is called with the progress.
    /// - Returns: This group.
    @discardableResult
    public func onMainActor(progress handler: @escaping @MainActor (GroupProgress) -> Void) -> Self {
        makeReporterIfNeeded(isOnMainActor: true)?.add(handler)
        return self
    }

    /// A Foundation progress object that represents the progress of the group.
    ///
    /// You can display the object, or add it as a child to a larger `Progress` object.
    ///
    /// To follow the progress, read this property before the group ends. The group updates the object on the callback
    /// queue. The unit of the object is a ten-thousandth of the group's work. To cancel, suspend or resume the group,
    /// call `cancel()`, `pause()` or `resume()` on the object. If the fraction of the group decreases, the object does
    /// not change until the fraction exceeds its earlier maximum.
    public var progress: Progress {
        guard let reporter = makeReporterIfNeeded() else { return makeProgress() }
        let progress = reporter.foundation(makeProgress)
        // A change between the two steps was reported to no listener.
        reporter.record(engine)
        return progress
    }

    /// Declares the expected total weight of all children, including children that you add later.
    ///
    /// If the children that you add have a larger total weight than expected, the group uses the weight of these
    /// children instead. A group that you create with `map` expects at least as many children as the
    /// `underestimatedCount` of its elements.
    ///
    /// - Parameter weight: The expected total weight of all children.
    public func expect(totalWeight weight: Double) { engine.expect(weight) }

    private func makeProgress() -> Progress {
        // The new progress must not become a part of another one that is current on this thread.
        let made = Progress(parent: nil)
        made.totalUnitCount = GroupProgressReporter.units
        GroupProgressReporter.show(engine.progress, in: made)
        made.isPausable = true
        made.cancellationHandler = { [weak self] in self?.cancel() }
        made.pausingHandler = { [weak self] in _ = self?.suspend() }
        made.resumingHandler = { [weak self] in _ = self?.resume() }
        return made
    }

    private func makeReporterIfNeeded(isOnMainActor: Bool = false) -> GroupProgressReporter? {
        // Only changes after this are reported.
        let made = GroupProgressReporter(reported: engine.progress) { [weak self] in
            guard let self, !isCancelled else { return nil }
            return (isOnMainActor ? .main : callbackQueue, self)
        }
        return engine.state.withLock { state in
            if state.machine.isOver { return nil }
            let reporter = (isOnMainActor ? state.mainActorReporter : state.reporter) ?? made
            if isOnMainActor { state.mainActorReporter = reporter } else { state.reporter = reporter }
            return reporter
        }
    }
}

extension GroupScope {
    /// Declares the expected total weight of all children, which the group uses to compute its progress.
    ///
    /// - Parameter weight: The expected total weight of all children.
    public func expect(totalWeight weight: Double) { engine.expect(weight) }
}

extension GroupEngine {
    func expect(_ weight: Double) {
        let isOn = state.withLock { state in
            state.meter.expect(weight)
            return state.meter.isOn
        }
        if isOn { reportProgress() }
    }
}

/// Reports the progress of a group to its listeners on its callback queue, one report at a time.
///
/// A slow queue gets fewer reports. At most one report waits there, with the progress at the time when it is made.
final class GroupProgressReporter: Sendable {
    private struct State {
        var handler: (@Sendable (GroupProgress) -> Void)?
        /// The handlers that are called after `handler`, in the order in which they were added.
        var mainActorHandlers: [@MainActor (GroupProgress) -> Void] = []
        var foundation: Progress?
        var reported: GroupProgress
        /// Whether a turn on the callback queue is scheduled or running.
        ///
        /// A change during a turn leads to another one.
        var turns = RepeatFlag()
        /// Whether no further report follows, because the handler of the result comes next.
        var isLast = false
        /// Whether a thread is updating Foundation's progress.
        var updatingProgress = RepeatFlag()
    }

    private let state: Locked<State>
    /// Returns the callback queue and the group, or `nil` if nothing is to be reported any more.
    private let queue: @Sendable () -> (DispatchQueue, ManagedOperation)?

    init(reported: GroupProgress, queue: @escaping @Sendable () -> (DispatchQueue, ManagedOperation)?) {
        state = Locked(State(reported: reported))
        self.queue = queue
    }

    var handler: (@Sendable (GroupProgress) -> Void)? {
        get { state.withLock { $0.handler } }
        set {
            state.release { exchange(&$0.handler, with: newValue) }
        }
    }

    /// Adds a handler for a reporter whose queue is the main queue.
    func add(_ handler: @escaping @MainActor (GroupProgress) -> Void) {
        state.withLock { $0.mainActorHandlers.append(handler) }
    }

    /// Returns Foundation's progress, and creates it if there is none.
    func foundation(_ make: () -> Progress) -> Progress {
        if let known = state.withLock({ $0.foundation }) { return known }
        let made = make()
        return state.withLock { state in
            let known = state.foundation ?? made
            state.foundation = known
            return known
        }
    }

    /// Notes that the progress may have changed.
    func record(_ engine: GroupEngine, isLast: Bool = false) {
        let begins: Bool? = state.withLock { state in
            guard state.handler != nil || state.foundation != nil || !state.mainActorHandlers.isEmpty else {
                return nil
            }
            if isLast { state.isLast = true }
            return state.turns.request()
        }
        switch begins {
        case true?: schedule { [self] in takeTurns(engine) }
        // The scheduled turn may run after the handler of the result, so the last report gets its own turn.
        case false? where isLast: schedule { [self] in notify(engine) }
        case false?, nil: break
        }
    }

    private func schedule(_ turn: @escaping @Sendable () -> Void) {
        guard let (queue, group) = queue() else { return }
        // The group stays alive until its listeners were called.
        group.enqueueBeforeOutcome(on: queue) { withExtendedLifetime(group) { turn() } }
    }

    private func takeTurns(_ engine: GroupEngine) {
        state.withLock { $0.turns.startRound() }
        notify(engine)
        while true {
            let (continues, isLast) = state.withLock { ($0.turns.finishRound(), $0.isLast) }
            guard continues else { return }
            // The next turn goes to the end of the queue, because with many changes this turn would never end.
            guard isLast else { return schedule { [self] in takeTurns(engine) } }
            notify(engine)
        }
    }

    private func notify(_ engine: GroupEngine) {
        let progress = engine.state.withLock { $0.meter.progress }
        let (handler, mainActorHandlers, foundation) = state.withLock { state in
            // On a concurrent queue a turn that read the progress before the end may come here after the last report.
            let isOutdated = state.isLast && progress.fraction < 1
            let hasChanged = !isOutdated && state.reported != progress
            if hasChanged { state.reported = progress }
            return hasChanged ? (state.handler, state.mainActorHandlers, state.foundation) : (nil, [], nil)
        }
        // No report follows a cancellation.
        if queue() != nil {
            handler?(progress)
            if !mainActorHandlers.isEmpty {
                MainActor.assumeIsolated { for handler in mainActorHandlers { handler(progress) } }
            }
            if let foundation {
                // One thread at a time, so that the value does not go backward on a concurrent queue.
                state.runRounds(of: \.updatingProgress) { Self.show(state.withLock { $0.reported }, in: foundation) }
            }
        }
    }

    /// The total unit count of Foundation's progress.
    static let units: Int64 = 10_000

    static func show(_ progress: GroupProgress, in foundation: Progress) {
        let done = Int64(progress.fraction * Double(units))
        if done > foundation.completedUnitCount { foundation.completedUnitCount = done }
    }
}

/// The sums of the progress of the children of a group, as a pure value.
///
/// The sums that make a late start possible are always kept. The rest is kept from the first request on.
package struct GroupMeter: Sendable {
    private var added = 0.0
    private var ended = 0.0
    /// The number of children that have not ended.
    private var openCount = 0
    private var expected = 0.0
    /// Whether a sequence may bring an unknown number of further children, so that one more is expected.
    package var isOpen = false
    /// The weights of children that have not ended, except weights of one.
    private var weights: [GroupMachine.Slot: Double] = [:]
    /// Whether the progress was requested.
    package var isOn = false
    /// The shares that running children have reported.
    private var marks: [GroupMachine.Slot: Double] = [:]
    /// The sum of the marks, each multiplied by its weight.
    private var partial = 0.0
    private var isComplete = false
    /// The completed weight when the group failed or was canceled, because canceled children are no progress.
    private var frozen: Double?
    /// The fraction that was last reported to the group around this one.
    private var reported = 0.0

    package init() {}

    /// Returns a weight that can be added up, which is zero if the weight is negative or not a number.
    private static func usable(_ weight: Double) -> Double { weight > 0 ? min(weight, 1e15) : 0 }

    /// Adds a child.
    package mutating func add(_ slot: GroupMachine.Slot, weight: Double) {
        let weight = weight == 1 ? 1 : Self.usable(weight)
        added += weight
        openCount += 1
        if weight != 1 { weights[slot] = weight }
    }

    /// Sets the expected weight of all children.
    package mutating func expect(_ weight: Double) { expected = Self.usable(weight) }

    /// Notes that a child ended.
    package mutating func end(_ slot: GroupMachine.Slot) {
        let weight = weights.isEmpty ? 1 : weights.removeValue(forKey: slot) ?? 1
        ended += weight
        openCount -= 1
        // The weights were added in another order, so rounding may make the sums differ.
        if openCount == 0 { ended = added }
        if marks.isEmpty { return }
        if let mark = marks.removeValue(forKey: slot) { partial -= mark * weight }
        // Remove the sum of the rounding errors.
        if marks.isEmpty { partial = 0 }
    }

    /// Notes how much of a child is completed, which never goes backward.
    ///
    /// - Returns: Whether the progress changed.
    package mutating func mark(_ slot: GroupMachine.Slot, _ fraction: Double) -> Bool {
        let old = marks[slot] ?? 0
        guard isOn, fraction > old else { return false }
        let new = min(fraction, 1)
        marks[slot] = new
        partial += (new - old) * (weights[slot] ?? 1)
        return new > old
    }

    /// Notes that the group has its result, so that its progress is complete.
    package mutating func complete() { isComplete = true }

    /// Keeps the progress as it is, because the children are to be canceled, unless the group gets a result after all.
    package mutating func freeze() { if frozen == nil { frozen = ended + partial } }

    package var progress: GroupProgress {
        let total = isOpen && expected == 0 ? added + 1 : max(added, expected)
        // Without any weight, the fraction of a complete group would be 0.
        if isComplete, total == 0 { return GroupProgress(completedWeight: 1, totalWeight: 1) }
        return GroupProgress(
            completedWeight: isComplete ? total : min(frozen ?? ended + partial, total), totalWeight: total)
    }

    /// Returns the fraction to report to the group around this one, or `nil` if the change is too small.
    ///
    /// Many groups may be around this one, so they do not get each small change.
    package mutating func takeChange() -> Double? {
        let fraction = progress.fraction
        guard fraction - reported >= 0.001 || fraction == 1 && reported < 1 else { return nil }
        reported = fraction
        return fraction
    }
}

/// An operation that reports its progress to the group that contains the operation.
///
/// Network and file operations conform to this protocol. To make your own operation conform, implement one property and
/// call one method:
///
/// ```swift
/// final class Import: AsyncOperation<Int, Never>, MeasuredOperation,
///     @unchecked Sendable
/// {
///     var completedFraction: Double? { 0.5 }
///
///     override func main() {
///         completedFractionDidChange()
///         finish(withResult: 1)
///     }
/// }
/// ```
public protocol MeasuredOperation: ManagedOperation {
    /// The fraction of the work that is complete, from 0 to 1, or `nil` if the fraction is not known.
    ///
    /// OperationKit can read the property on any thread and holds no lock at that time.
    var completedFraction: Double? { get }
}

extension MeasuredOperation {
    /// Notifies the operation's group that ``completedFraction`` has changed.
    ///
    /// Do not hold a lock when you call this method, because the method may read ``completedFraction``. The call has no
    /// effect if no code has read or observed the progress of the group or of an outer group.
    public func completedFractionDidChange() { fractionDidChange { completedFraction } }
}

extension ManagedOperation {
    /// Reports the progress to the group of the operation, if the group measures it.
    package final func fractionDidChange(_ fraction: () -> Double?) {
        let (parent, slot) = core.withLock { ($0.parentEngine, $0.parentSlot) }
        guard let parent, parent.isMeasuring, let fraction = fraction() else { return }
        parent.childDidAdvance(self, slot, to: fraction)
    }
}

// The progress of the children.
extension GroupEngine {
    /// Whether the progress of this group, or of one around it, was requested.
    var isMeasuring: Bool { state.withLock { $0.meter.isOn } }

    /// The progress, which this group and all groups in it measure from the first call on.
    var progress: GroupProgress {
        beginMeasuring()
        return state.withLock { $0.meter.progress }
    }

    /// Begins to measure the progress, in a loop and not in a recursion.
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
        // The progress that was made before is reported outward, from the innermost groups on.
        for engine in begun.reversed() { engine.reportProgress() }
    }

    /// Makes a child that is a group measure its progress if this group does.
    func beginMeasuring(_ child: ManagedOperation) {
        if let inner = child.groupEngine, isMeasuring { inner.beginMeasuring() }
    }

    /// Notes how much of a child is completed.
    func childDidAdvance(_ child: ManagedOperation, _ slot: GroupMachine.Slot, to fraction: Double) {
        let hasChanged = state.withLock { state in
            state.holds(child, at: slot) && state.meter.mark(slot, fraction)
        }
        if hasChanged { reportProgress() }
    }

    /// Notifies the listeners of this group and of the groups around it.
    func reportProgress() {
        var next: GroupEngine? = self
        while let engine = next {
            let (reporter, mainActorReporter, operation, change) = engine.state.withLock { state in
                let change = state.meter.isOn ? state.meter.takeChange() : nil
                return (state.reporter, state.mainActorReporter, state.operation, change)
            }
            reporter?.record(engine)
            mainActorReporter?.record(engine)
            next = nil
            guard let operation, let change else { return }
            let (outer, slot) = operation.core.withLock { ($0.parentEngine, $0.parentSlot) }
            let hasChanged = outer?.state.withLock { state in
                state.holds(operation, at: slot) && state.meter.mark(slot, change)
            }
            if hasChanged == true { next = outer }
        }
    }

    /// Reports the complete progress, before the handlers of the result are called.
    func completeProgress(_ reporters: [GroupProgressReporter]) {
        let isOn = state.withLock { state in
            state.meter.complete()
            return state.meter.isOn
        }
        guard isOn else { return }
        for reporter in reporters { reporter.record(self, isLast: true) }
    }
}
