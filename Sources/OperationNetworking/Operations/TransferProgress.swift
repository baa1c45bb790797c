// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The progress of sending or receiving a body, in bytes.
public struct TransferProgress: Sendable, Hashable, CustomStringConvertible {
    /// The number of bytes that the session has sent or received.
    ///
    /// The value that an operation reports never decreases, even if the operation makes another attempt.
    public let completedBytes: Int64
    /// The total number of bytes in the body, or `nil` if it is not known.
    public let totalBytes: Int64?

    /// Creates a progress value from a number of completed bytes and a total.
    ///
    /// - Parameters:
    ///   - completedBytes: The number of bytes that the session has sent or received.
    ///   - totalBytes: The total number of bytes in the body, or `nil` if the number is not known.
    public init(completedBytes: Int64, totalBytes: Int64?) {
        self.completedBytes = completedBytes
        self.totalBytes = totalBytes
    }

    /// The fraction of the body that the session has sent or received, from 0 to 1, or `nil` if the total is not known.
    public var fraction: Double? {
        guard let totalBytes else { return nil }
        return totalBytes > 0 ? min(Double(completedBytes) / Double(totalBytes), 1) : 1
    }

    /// A description of the progress, such as `12 of 100 bytes`.
    public var description: String { "\(completedBytes) of \(totalBytes.map { "\($0)" } ?? "?") bytes" }
}

/// A value that determines how often an operation reports its progress.
public struct ProgressPacing: Sendable, Hashable {
    /// The minimum number of bytes between progress reports.
    ///
    /// The default is 16 KiB. If the body is larger than 100 times this value, the minimum is one hundredth of the
    /// body. If the value is 1, the minimum is 1 byte, regardless of the size of the body.
    public var smallestStep: Int64
    /// The minimum time between progress reports.
    ///
    /// The default is zero, which sets no minimum time.
    public var interval: Duration

    /// Creates a value that determines how often an operation reports its progress.
    ///
    /// The operation always reports the end of a body.
    ///
    /// - Parameters:
    ///   - smallestStep: The minimum number of bytes between progress reports. The default is 16 KiB.
    ///   - interval: The minimum time between progress reports. The default is zero, which sets no minimum time.
    public init(smallestStep: Int64 = 16 << 10, interval: Duration = .zero) {
        self.smallestStep = smallestStep
        self.interval = interval
    }
}

/// Reports an operation's progress to its listeners on the callback queue, one report at a time.
///
/// A second reporter reports to the main actor's callbacks on the main queue. The second reporter is created with the
/// first of these callbacks, and the reporter of the callback queue passes each change to it.
///
/// A slow queue gets fewer reports instead of a backlog. At most one report waits in the queue, and it contains the
/// values at the time when it runs. The next report is enqueued again behind other work, so that a slow listener does
/// not occupy the queue.
final class ProgressReporter: Sendable {
    enum Direction: Sendable { case upload, download }

    struct Listeners: Sendable {
        var upload: (@Sendable (TransferProgress) -> Void)?
        var download: (@Sendable (TransferProgress) -> Void)?
        var foundation: FoundationProgress?
        // Sendable: loading a weak reference is atomic, and it is only written under the lock.
        nonisolated(unsafe) weak var delegate: (any NetworkOperationDelegate)?
        /// Whether a delegate was set.
        ///
        /// Loading the weak reference under the lock could free the delegate there.
        var hasDelegate = false
        // Sendable: like the delegate. The reference is formed long before the operation can be freed, and is nil once
        // `deinit` begins.
        nonisolated(unsafe) weak var operation: (any AttemptOwner)?
        var isDelegateNotifiedOfEnd = false
        var pacing = ProgressPacing()

        var isAny: Bool { upload != nil || download != nil || foundation != nil || hasDelegate }
    }

    fileprivate struct State {
        @Boxed private var given: Listeners?
        var upload = ProgressTrack()
        var download = ProgressTrack()
        /// Whether a block is enqueued on the callback queue, or is about to be.
        var turn = RepeatFlag()
        /// Whether a report is being delivered.
        var notifying = RepeatFlag()
        var isLast = false
        /// Whether Foundation's progress still has to be finished.
        var owesFinish = false
        /// Whether the operation has ended, and the handlers were released.
        var hasReleasedHandlers = false
        /// The reporter of the main actor.
        var main: ProgressReporter?

        /// The listeners, most of which are set before the start.
        var listeners: Listeners {
            get { given ?? Listeners() }
            set { given = newValue }
        }

        var hasListeners: Bool { given?.isAny == true }
    }

    private let state: Locked<State>
    /// The callbacks of the main actor, if this reporter reports to them.
    private let callbacks: MainActorCallbacks?

    init() {
        state = Locked(State())
        callbacks = nil
    }

    /// Creates the reporter of the main actor, with the current progress of the transfer.
    private init(_ callbacks: MainActorCallbacks, after other: State) {
        var state = State()
        state.listeners.hasDelegate = true
        state.listeners.pacing = other.listeners.pacing
        (state.upload, state.download) = (other.upload.unreported, other.download.unreported)
        state.isLast = other.isLast
        self.state = Locked(state)
        self.callbacks = callbacks
    }

    func listeners<Result>(_ body: (Listeners) -> Result) -> Result { state.withLock { body($0.listeners) } }
    func change<Result>(_ body: (inout Listeners) -> Result) -> Result { state.withLock { body(&$0.listeners) } }

    /// Replaces a listener, and releases the old one without holding the lock.
    func set<Value>(_ path: WritableKeyPath<Listeners, Value>, _ value: Value) {
        var value = value
        let isLate = state.withLock { state in
            swap(&state.listeners[keyPath: path], &value)
            return state.hasReleasedHandlers
        }
        if isLate { releaseHandlers() }
    }

    /// Records the end, and returns `false` if there are no listeners to notify or to release.
    func end() -> Bool {
        state.withLock { state in
            guard !state.hasListeners, state.main == nil else { return true }
            // A handler that is set from now on is released immediately.
            state.hasReleasedHandlers = true
            return false
        }
    }

    /// Releases the handlers, which may hold the operation, after the reports that are already enqueued.
    func releaseHandlers(on queue: () -> DispatchQueue) {
        guard
            state.withLock({ state in
                if state.hasListeners, state.listeners.upload != nil || state.listeners.download != nil { return true }
                state.hasReleasedHandlers = true
                return false
            })
        else { return }
        queue().async(flags: .barrier) { self.releaseHandlers() }
    }

    private func releaseHandlers() {
        state.release { state in
            state.hasReleasedHandlers = true
            return (exchange(&state.listeners.upload, with: nil), exchange(&state.listeners.download, with: nil))
        }
    }

    func set(delegate: (any NetworkOperationDelegate)?) {
        // If nothing else keeps the old delegate, it is freed here, without holding the lock.
        let old = change { listeners in
            let old = listeners.delegate
            if old !== delegate { listeners.isDelegateNotifiedOfEnd = false }
            (listeners.delegate, listeners.hasDelegate) = (delegate, delegate != nil)
            return old
        }
        extendLifetime(old)
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

    /// Returns the callbacks of the main actor, and creates them if necessary.
    func mainActorCallbacks(of operation: any AttemptOwner) -> MainActorCallbacks {
        set(\.operation, operation)
        let new = MainActorCallbacks()
        return state.withLock { state in
            if let known = state.main?.callbacks { return known }
            state.main = ProgressReporter(new, after: state)
            return new
        }
    }

    var upload: TransferProgress { state.withLock { $0.upload.progress } }
    var download: TransferProgress { state.withLock { $0.download.progress } }

    /// Updates the progress of a direction, and schedules a report.
    func record(
        _ direction: Direction, _ count: Int64?, of total: Int64?, for operation: any AnyNetworkOperation
    ) {
        schedule(for: operation) { state in
            switch direction {
            case .upload: state.upload.advance(to: count, of: total)
            case .download: state.download.advance(to: count, of: total)
            }
        }
        operation.fractionDidChange { operation.completedFraction }
    }

    /// Returns the listeners to notify of the end, and each delegate only once.
    func takeListenersOfEnd() -> (
        operation: any AttemptOwner, delegate: (any NetworkOperationDelegate)?, callbacks: MainActorCallbacks?
    )? {
        // These may be the last references, so they are released after the lock.
        let (delegate, callbacks, operation) = state.withLock { state in
            let (delegate, operation) = (state.listeners.delegate, state.listeners.operation)
            let isFirst = !state.listeners.isDelegateNotifiedOfEnd
            if delegate != nil, operation != nil { state.listeners.isDelegateNotifiedOfEnd = true }
            return (isFirst ? delegate : nil, state.main?.callbacks, operation)
        }
        guard let operation else { return nil }
        return (operation, delegate, callbacks)
    }

    /// Marks the transfer as complete.
    func complete(for operation: any AnyNetworkOperation) {
        schedule(for: operation, isLast: true) { state in
            state.download.complete()
            state.isLast = true
            state.owesFinish = state.hasListeners && state.listeners.foundation != nil
        }
    }

    /// Enqueues a block on the callback queue, if there is something to report and no block is enqueued yet.
    ///
    /// The last report gets its own block, unless the outcome is decided. The success is enqueued next, and a block
    /// that another thread is about to enqueue could come after it.
    private func schedule(
        for operation: any AnyNetworkOperation, isLast: Bool = false, _ change: (inout State) -> Void
    ) {
        let (mayNotify, main) = state.withLock { state in
            change(&state)
            return (state.hasListeners && (isLast || !state.turn.isRunning), state.main)
        }
        main?.schedule(for: operation, isLast: isLast, change)
        guard mayNotify else { return }
        let now = operation.clock.now
        let isNeeded = state.withLock { state in
            guard isLast || !state.turn.isRunning, state.hasReport(at: now) else { return false }
            _ = state.turn.request()
            return true
        }
        if isNeeded { takeTurn(for: operation, isLast: isLast) }
    }

    /// Enqueues a block, unless the outcome is decided, whose handler would come before it.
    ///
    /// The block of the last report keeps the operation alive, as the handler of its outcome does. The operation may
    /// end before the block runs, and nothing else may keep it then.
    private func takeTurn(for operation: any AnyNetworkOperation, isLast: Bool = false) {
        let queue = callbacks == nil ? operation.nearestCallbackQueue : .main
        let kept = isLast ? operation : nil
        operation.enqueueBeforeOutcome(on: queue) { [weak operation] in
            if let operation = kept ?? operation { self.notify(operation) }
        }
    }

    /// Delivers one report, or all remaining ones after the end.
    private func notify(_ operation: any AnyNetworkOperation) {
        while true {
            let now = operation.clock.now
            guard let report = state.withLock({ $0.begin(at: now) }) else { return }
            notify(report, of: operation)
            let then = operation.clock.now
            guard let isNow = state.withLock({ $0.end(at: then) }) else { return }
            if !isNow { return takeTurn(for: operation) }
        }
    }

    private func notify(_ report: Report, of operation: any AnyNetworkOperation) {
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

    /// The values of one report.
    fileprivate struct Report {
        let listeners: Listeners
        let upload: TransferProgress?
        let download: TransferProgress?
        let isComplete: Bool
    }
}

extension ProgressReporter.State {
    /// Begins a report, or returns nil if there is none or if another thread is delivering one.
    fileprivate mutating func begin(at now: OperationInstant) -> ProgressReporter.Report? {
        guard notifying.request() else { return nil }
        guard hasReport(at: now) else {
            notifying.stop()
            turn.stop()
            return nil
        }
        let reports = takeReports(at: now)
        owesFinish = false
        return ProgressReporter.Report(
            listeners: listeners, upload: reports.upload, download: reports.download, isComplete: isLast)
    }

    /// Ends a report, and returns whether the next one is due now or later, or nil if there is none.
    fileprivate mutating func end(at now: OperationInstant) -> Bool? {
        notifying.stop()
        if hasReport(at: now) { return isLast }
        turn.stop()
        return nil
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

/// One direction of a transfer, with the counted and the reported bytes.
struct ProgressTrack: Sendable {
    private(set) var count: Int64 = 0
    private(set) var total: Int64?
    @Boxed private var report: (count: Int64, total: Int64?, time: OperationInstant)?

    var progress: TransferProgress { TransferProgress(completedBytes: count, totalBytes: total) }

    /// The same count, with nothing reported.
    var unreported: ProgressTrack {
        var track = ProgressTrack()
        (track.count, track.total) = (count, total)
        return track
    }

    /// Records the number of bytes, or only the expected length of a body that begins, possibly again.
    mutating func advance(to newCount: Int64?, of newTotal: Int64?) {
        switch (newCount, total) {
        case (nil, _), (_, nil): total = newTotal
        case (.some, .some): break
        }
        if let newCount { count = max(count, newCount) }
        if let total, total < count { self.total = count }
    }

    /// Completes the body, so that its total is known regardless of the expected length.
    mutating func complete() { total = count }

    /// Returns the progress if it should be reported now.
    mutating func report(_ pacing: ProgressPacing, isLast: Bool, now: OperationInstant) -> TransferProgress? {
        let (last, reported) = (report, report?.count ?? 0)
        guard count > reported || (isLast && count > 0 && total != last?.total) else { return nil }
        if !isLast {
            let step = pacing.smallestStep > 1 ? max(pacing.smallestStep, (total ?? 0) / 100) : 1
            guard reported == 0 || count - reported >= step || count == total else { return nil }
            if let last, pacing.interval > .zero, last.time.duration(to: now) < pacing.interval { return nil }
        }
        report = (count, total, now)
        return progress
    }
}

/// Updates a Foundation `Progress` from an operation.
///
/// The `Progress` counts the bytes of one direction, so that it never moves backwards and finishes exactly when the
/// response is complete. For a request with a body, it counts the sent bytes and one unit for the response. For a
/// download or a request without a body, it counts the received bytes. While the length is unknown, both counts are
/// zero, which is indeterminate. Foundation on Linux traps on negative counts in a tree.
struct FoundationProgress: Sendable {
    let progress: Progress
    private let countsDownload: Bool

    init(for operation: any AnyNetworkOperation) {
        // The `Progress` must not become a child of the thread's current progress.
        progress = Progress(parent: nil)
        countsDownload = (operation as? any AttemptOwner)?.isDownload == true
        progress.isCancellable = true
        progress.isPausable = true
        progress.cancellationHandler = { [weak operation] in operation?.cancel() }
        progress.pausingHandler = { [weak operation] in operation?.suspendExecution() }
        progress.resumingHandler = { [weak operation] in operation?.resumeExecution() }
    }

    /// Updates the counts, and is called by one thread at a time.
    func update(upload: TransferProgress, download: TransferProgress, isComplete: Bool) {
        let isUpload = !countsDownload && (upload.completedBytes > 0 || upload.totalBytes ?? 0 > 0)
        let body = isUpload ? upload : download
        let answer: Int64 = isUpload ? 1 : 0
        if isComplete {
            // A progress with no units is never finished.
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
    /// The fraction of the transfer that is complete, from 0 to 1, or `nil` if the length of the body is not known.
    ///
    /// If the request has a body, the fraction describes the progress of sending that body. Otherwise, the fraction
    /// describes the progress of receiving the response body. A group calculates its own progress from the fractions of
    /// its operations.
    public var completedFraction: Double? {
        let (upload, download) = (uploadProgress, downloadProgress)
        guard upload.completedBytes > 0 || upload.totalBytes ?? 0 > 0 else {
            return download.totalBytes ?? 0 > 0 ? download.fraction : nil
        }
        // The response is a small part of the work.
        return upload.totalBytes.map { Double(upload.completedBytes) / (Double($0) + 1) }
    }
}

extension NetworkOperation: MeasuredOperation {}
