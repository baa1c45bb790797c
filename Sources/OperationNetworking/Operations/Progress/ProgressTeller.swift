// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

/// Tells an operation's listeners of its progress, on its callback queue, one report at a time.
///
/// For callbacks of the main actor there is a second teller, which does the same on the main queue. It is made when the
/// first of them is added, and the teller of the callback queue hands each change on to it.
///
/// A queue that is slow gets fewer reports, not a pile of them: one waits there, and it tells what is true when its turn
/// comes. The next takes a turn of its own behind whatever else waits, so that a slow listener does not keep the queue.
final class ProgressTeller: Sendable {
    enum Direction: Sendable { case upload, download }

    struct Listeners: Sendable {
        var upload: (@Sendable (TransferProgress) -> Void)?
        var download: (@Sendable (TransferProgress) -> Void)?
        var foundation: FoundationProgress?
        // Sendable: loading a weak reference is atomic, and it is only written under the lock.
        nonisolated(unsafe) weak var delegate: (any NetworkOperationDelegate)?
        /// Whether there was one when it was set: to look for it under the lock could be to have it freed there.
        var hasDelegate = false
        // Sendable: as the delegate. Formed long before the operation may be freed, it is nil once that begins.
        nonisolated(unsafe) weak var operation: (any AttemptHost)?
        var isDelegateToldOfEnd = false
        var pacing = ProgressPacing()

        var isAny: Bool { upload != nil || download != nil || foundation != nil || hasDelegate }
    }

    fileprivate struct State {
        var listeners = Listeners()
        var upload = ProgressTrack()
        var download = ProgressTrack()
        /// Whether a turn on the callback queue is taken, or about to be.
        var turn = RepeatFlag()
        /// Whether a report is being told.
        var telling = RepeatFlag()
        var isLast = false
        /// Whether Foundation's progress is to be finished.
        var owesFinish = false
        /// Whether the operation has ended, and the handlers were released.
        var hasReleasedHandlers = false
        /// The teller of the main actor.
        var main: ProgressTeller?
    }

    private let state: Locked<State>
    /// The callbacks of the main actor, if this is their teller.
    private let callbacks: MainActorCallbacks?

    init() {
        state = Locked(State())
        callbacks = nil
    }

    /// Creates the teller of the main actor for a transfer that has come so far.
    private init(_ callbacks: MainActorCallbacks, after other: State) {
        var state = State()
        state.listeners.hasDelegate = true
        state.listeners.pacing = other.listeners.pacing
        (state.upload, state.download) = (other.upload.untold, other.download.untold)
        state.isLast = other.isLast
        self.state = Locked(state)
        self.callbacks = callbacks
    }

    func listeners<Result>(_ body: (inout Listeners) -> Result) -> Result { state.withLock { body(&$0.listeners) } }

    /// Replaces a listener; the one that was there goes outside of the lock.
    func set<Value>(_ path: WritableKeyPath<Listeners, Value>, _ value: Value) {
        var value = value
        let isLate = state.withLock { state in
            swap(&state.listeners[keyPath: path], &value)
            return state.hasReleasedHandlers
        }
        if isLate { releaseHandlers() }
    }

    /// Releases the handlers, which may hold the operation, after the reports that are on the queue.
    func releaseHandlers(on queue: () -> DispatchQueue) {
        guard
            state.withLock({ state in
                if state.listeners.upload != nil || state.listeners.download != nil { return true }
                state.hasReleasedHandlers = true
                return false
            })
        else { return }
        queue().async(flags: .barrier) { self.releaseHandlers() }
    }

    private func releaseHandlers() {
        let old = state.withLock { state in
            state.hasReleasedHandlers = true
            return (exchange(&state.listeners.upload, with: nil), exchange(&state.listeners.download, with: nil))
        }
        withExtendedLifetime(old) {}
    }

    func set(delegate: (any NetworkOperationDelegate)?) {
        // If nothing else keeps the old delegate, it is freed here, outside the lock.
        let old = listeners { listeners in
            let old = listeners.delegate
            if old !== delegate { listeners.isDelegateToldOfEnd = false }
            (listeners.delegate, listeners.hasDelegate) = (delegate, delegate != nil)
            return old
        }
        withExtendedLifetime(old) {}
    }

    func set(pacing: ProgressPacing) {
        let main = state.withLock { state in
            state.listeners.pacing = pacing
            return state.main
        }
        main?.set(pacing: pacing)
    }

    /// The callbacks of the main actor, if there are any.
    var mainActorCallbacks: MainActorCallbacks? { state.withLock { $0.main?.callbacks } }

    /// The callbacks of the main actor, to add one.
    func mainActorCallbacks(of operation: any AttemptHost) -> MainActorCallbacks {
        set(\.operation, operation)
        let new = MainActorCallbacks()
        return state.withLock { state in
            if let known = state.main?.callbacks { return known }
            state.main = ProgressTeller(new, after: state)
            return new
        }
    }

    var upload: TransferProgress { state.withLock { $0.upload.progress } }
    var download: TransferProgress { state.withLock { $0.download.progress } }

    /// Notes how far a direction has come, and sees to it that it is told.
    func note(
        _ direction: Direction, _ count: Int64?, of total: Int64?, for operation: any AnyNetworkOperation
    ) {
        schedule(for: operation) { state in
            switch direction {
            case .upload: Self.advance(&state.upload, count, total)
            case .download: Self.advance(&state.download, count, total)
            }
        }
        operation.fractionDidChange { operation.completedFraction }
    }

    private static func advance(_ track: inout ProgressTrack, _ count: Int64?, _ total: Int64?) {
        if track.total == nil || count == nil { track.expect(total) }
        if let count { track.reach(count) }
    }

    /// A Boolean value that indicates whether a delegate or callbacks of the main actor are notified of the end.
    var hasListenersOfEnd: Bool { state.withLock { $0.listeners.hasDelegate || $0.main != nil } }

    /// Who is notified of the end of an operation that has its outcome; each delegate is returned once.
    func takeListenersOfEnd() -> ListenersOfEnd? {
        // Each may have been released by everybody else: it is freed after the lock.
        let (delegate, callbacks, operation) = state.withLock { state in
            let (delegate, operation) = (state.listeners.delegate, state.listeners.operation)
            let isFirst = !state.listeners.isDelegateToldOfEnd
            if delegate != nil, operation != nil { state.listeners.isDelegateToldOfEnd = true }
            return (isFirst ? delegate : nil, state.main?.callbacks, operation)
        }
        guard let operation else { return nil }
        return ListenersOfEnd(operation: operation, delegate: delegate, callbacks: callbacks)
    }

    struct ListenersOfEnd {
        let operation: any AttemptHost
        let delegate: (any NetworkOperationDelegate)?
        let callbacks: MainActorCallbacks?
    }

    /// The transfer is complete.
    func complete(for operation: any AnyNetworkOperation) {
        schedule(for: operation, isLast: true) { state in
            state.download.complete()
            state.isLast = true
            state.owesFinish = state.listeners.foundation != nil
        }
    }

    /// Takes a turn on the callback queue, if there is something to tell and no turn is taken yet.
    ///
    /// The last report has a turn of its own, unless the outcome is decided: the success comes next on the queue, and a turn
    /// that another thread is about to take may come behind that.
    private func schedule(
        for operation: any AnyNetworkOperation, isLast: Bool = false, _ change: (inout State) -> Void
    ) {
        let (mayTell, main) = state.withLock { state in
            change(&state)
            return ((isLast || !state.turn.isRunning) && state.listeners.isAny, state.main)
        }
        main?.schedule(for: operation, isLast: isLast, change)
        guard mayTell else { return }
        let now = operation.clock.now
        let isNeeded = state.withLock { state in
            guard isLast || !state.turn.isRunning, state.hasReport(at: now) else { return false }
            _ = state.turn.request()
            return true
        }
        if isNeeded { takeTurn(for: operation) }
    }

    /// Takes a turn, unless the outcome is decided, whose handler would come before it.
    private func takeTurn(for operation: any AnyNetworkOperation) {
        let queue = callbacks == nil ? operation.callbackQueueOfAttempts : .main
        operation.enqueueBeforeOutcome(on: queue) { [weak operation] in
            if let operation { self.tell(operation) }
        }
    }

    /// Tells one report, or the last ones together.
    private func tell(_ operation: any AnyNetworkOperation) {
        while true {
            let now = operation.clock.now
            guard let report = state.withLock({ $0.begin(at: now) }) else { return }
            tell(report, of: operation)
            let then = operation.clock.now
            switch state.withLock({ $0.end(at: then) }) {
            case .nothing: return
            case .now: continue
            case .later: return takeTurn(for: operation)
            }
        }
    }

    private func tell(_ report: Report, of operation: any AnyNetworkOperation) {
        let listeners = report.listeners
        let delegate = callbacks ?? listeners.delegate
        if let upload = report.upload, operation.mayCallHandlers {
            listeners.upload?(upload)
            if operation.mayCallHandlers { delegate?.networkOperation(operation, didSend: upload) }
        }
        if let download = report.download, operation.mayCallHandlers {
            listeners.download?(download)
            if operation.mayCallHandlers { delegate?.networkOperation(operation, didReceive: download) }
        }
        if operation.mayCallHandlers {
            listeners.foundation?.update(
                upload: self.upload, download: self.download, isComplete: report.isComplete)
        }
    }

    /// What is told at a time.
    fileprivate struct Report {
        let listeners: Listeners
        let upload: TransferProgress?
        let download: TransferProgress?
        let isComplete: Bool
    }

    /// When the next report is to be told.
    fileprivate enum Next { case nothing, now, later }
}

extension ProgressTeller.State {
    /// The report of a turn; nil if there is none, or another thread is telling one and sees to the rest.
    fileprivate mutating func begin(at now: OperationInstant) -> ProgressTeller.Report? {
        guard telling.request() else { return nil }
        guard hasReport(at: now) else {
            telling.stop()
            turn.stop()
            return nil
        }
        let reports = takeReports(at: now)
        owesFinish = false
        return ProgressTeller.Report(
            listeners: listeners, upload: reports.upload, download: reports.download, isComplete: isLast)
    }

    /// It was told.
    fileprivate mutating func end(at now: OperationInstant) -> ProgressTeller.Next {
        telling.stop()
        guard hasReport(at: now) else {
            turn.stop()
            return .nothing
        }
        return isLast ? .now : .later
    }

    fileprivate func hasReport(at now: OperationInstant) -> Bool {
        var copy = self
        let reports = copy.takeReports(at: now)
        return reports.upload != nil || reports.download != nil || owesFinish
    }

    fileprivate mutating func takeReports(
        at now: OperationInstant
    ) -> (upload: TransferProgress?, download: TransferProgress?) {
        let isLast = isLast
        let pacing = listeners.pacing
        return (
            upload.report(pacing, isLast: isLast, now: now), download.report(pacing, isLast: isLast, now: now)
        )
    }
}
