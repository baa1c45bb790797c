// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

/// How many bytes of a body were sent or received.
public struct TransferProgress: Sendable, Hashable, CustomStringConvertible {
    /// How many there are so far.
    ///
    /// It never becomes smaller, not even when an attempt is repeated.
    public let completedBytes: Int64
    /// How many there will be; nil if nobody knows.
    public let totalBytes: Int64?

    /// Makes one.
    public init(completedBytes: Int64, totalBytes: Int64?) {
        self.completedBytes = completedBytes
        self.totalBytes = totalBytes
    }

    /// From 0 to 1; nil if nobody knows.
    public var fraction: Double? {
        guard let totalBytes else { return nil }
        return totalBytes > 0 ? min(Double(completedBytes) / Double(totalBytes), 1) : 1
    }

    /// `12 of 100 bytes`.
    public var description: String { "\(completedBytes) of \(totalBytes.map { "\($0)" } ?? "?") bytes" }
}

/// How often progress is told.
public struct ProgressPacing: Sendable, Hashable {
    /// So many bytes must have come since the last report: 16 KiB, or one hundredth of the whole if that is more.
    ///
    /// With 1 every portion that comes is told, however large the whole is.
    public var smallestStep: Int64
    /// So much time must have passed since the last report: none.
    public var interval: Duration

    /// Makes a pace.
    ///
    /// Whatever it is, the end of a body is told.
    public init(smallestStep: Int64 = 16 << 10, interval: Duration = .zero) {
        self.smallestStep = smallestStep
        self.interval = interval
    }
}

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

/// One direction of a transfer: what was counted, and what was told of it.
struct ProgressTrack: Sendable {
    private(set) var count: Int64 = 0
    private(set) var total: Int64?
    private var told: Int64 = 0
    private var toldTotal: Int64?
    private var toldAt: OperationInstant?

    var progress: TransferProgress { TransferProgress(completedBytes: count, totalBytes: total) }

    /// The same count, of which nothing was told yet.
    var untold: ProgressTrack {
        var track = ProgressTrack()
        (track.count, track.total) = (count, total)
        return track
    }

    /// A body of so many bytes begins, maybe not for the first time.
    mutating func expect(_ total: Int64?) {
        self.total = total.map { max($0, count) }
    }

    mutating func reach(_ count: Int64) {
        self.count = max(self.count, count)
        if let total, total < self.count { self.total = self.count }
    }

    /// The body is complete, so that the whole is known, whatever was expected.
    mutating func complete() { total = count }

    /// What is to be told now, if it is worth it.
    mutating func report(_ pacing: ProgressPacing, isLast: Bool, now: OperationInstant) -> TransferProgress? {
        guard count > told || (isLast && count > 0 && total != toldTotal) else { return nil }
        if !isLast {
            let step = pacing.smallestStep > 1 ? max(pacing.smallestStep, (total ?? 0) / 100) : 1
            guard told == 0 || count - told >= step || count == total else { return nil }
            if let toldAt, pacing.interval > .zero, toldAt.duration(to: now) < pacing.interval { return nil }
        }
        told = count
        toldTotal = total
        toldAt = now
        return progress
    }
}

/// Keeps a `Progress` of Foundation in step with an operation.
///
/// It counts the bytes of one direction: those of the request's body, if it has one, with one unit more for the answer to
/// it; else, and of a download in any case, those of the response's body. So it never runs backwards, and is finished when
/// the response is complete and not before. While the length of the body is not known both counts are zero, which is
/// indeterminate: Foundation on Linux traps on negative counts in a tree.
struct FoundationProgress: Sendable {
    let progress: Progress
    private let countsDownload: Bool

    init(for operation: any AnyNetworkOperation) {
        // Not a child of whatever progress is current on this thread.
        progress = Progress(parent: nil)
        countsDownload = operation is any SavingOperation
        progress.isCancellable = true
        progress.isPausable = true
        progress.cancellationHandler = { [weak operation] in operation?.cancel() }
        progress.pausingHandler = { [weak operation] in operation?.suspendExecution() }
        progress.resumingHandler = { [weak operation] in operation?.resumeExecution() }
    }

    /// Called by one thread at a time.
    func update(upload: TransferProgress, download: TransferProgress, isComplete: Bool) {
        let isUpload = !countsDownload && (upload.completedBytes > 0 || upload.totalBytes ?? 0 > 0)
        let body = isUpload ? upload : download
        let answer: Int64 = isUpload ? 1 : 0
        if isComplete {
            // At least one unit, for what has none is never finished.
            finish(at: max(body.completedBytes.addingSaturated(answer), progress.totalUnitCount, 1))
        } else if let length = body.totalBytes, length > 0 {
            let total = length.addingSaturated(answer)
            if total > progress.totalUnitCount { progress.totalUnitCount = total }
            let done = min(body.completedBytes, length)
            if done > progress.completedUnitCount { progress.completedUnitCount = done }
        }
    }

    private func finish(at total: Int64) {
        if progress.totalUnitCount != total { progress.totalUnitCount = total }
        if progress.completedUnitCount != total { progress.completedUnitCount = total }
    }
}

extension AnyNetworkOperation {
    /// The share of the transfer that is done: of the request's body if it has one, else of the response's; nil while
    /// its length is not known.
    ///
    /// So a group of downloads shows how far they are together: see `MeasuredOperation`.
    public var completedFraction: Double? {
        let (upload, download) = (uploadProgress, downloadProgress)
        guard upload.completedBytes > 0 || upload.totalBytes ?? 0 > 0 else {
            return download.totalBytes ?? 0 > 0 ? download.fraction : nil
        }
        // The answer to it is a part of the work, if a small one.
        return upload.totalBytes.map { Double(upload.completedBytes) / (Double($0) + 1) }
    }
}

extension NetworkOperation: MeasuredOperation {}
