// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import OperationCore

/// The file side of a download for whoever makes the requests: as many as it takes, one after another.
///
/// For each: `prepare` it, make a task with the receiver of `makeReceiver`, and do what its conclusion says. At the end,
/// however it comes, `close`. All work with files is done on a queue of its own; a transfer that is faster than the disk
/// is held.
package final class Download: Sendable {
    /// How long a place that is taken is waited for.
    private static let patience = Duration.seconds(1)

    private let queue = DispatchQueue(label: "OperationKit.Download", autoreleaseFrequency: .workItem)
    private let clock: any OperationClock
    private let cancellation = DownloadCancellation()
    /// Whether its part is known to this object alone.
    let isTemporary: Bool
    private let turn = Locked(DownloadTurn())
    // Sendable: only used on `queue`.
    private nonisolated(unsafe) let work: DownloadWork

    package init(
        to destination: DownloadDestination, options: DownloadOptions = DownloadOptions(),
        files: FileSystem = FileSystem(), clock: any OperationClock = .system,
        keptBytes: Int = DownloadWork.usualKeptBytes,
        accepts: @escaping @Sendable (ResponseHead) -> Bool = { _ in true }
    ) {
        self.clock = clock
        isTemporary = destination.isTemporary
        work = DownloadWork(
            to: destination, options: options, files: files, clock: clock, cancellation: cancellation,
            keptBytes: keptBytes, accepts: accepts)
    }

    /// Ends it as cancelled, wherever it is with its files; the task of its request is for whoever made that.
    ///
    /// What was received stays, if it can be gone on with. When this returns the file will not come to its destination any
    /// more, unless it is being renamed just now.
    package func cancel() { cancellation.set() }

    /// Whether it was cancelled, so that nobody can go on with it.
    var isCancelled: Bool { cancellation.isSet }

    /// Makes the files ready, and gives the request as it is to be sent: with `Range` and `If-Range`, if a part is there.
    ///
    /// A download to the same place that was just cancelled may still be letting go of its part: that is waited for.
    package func prepare(
        _ request: NetworkRequest, whenReady: @escaping @Sendable (Result<NetworkRequest, NetworkError>) -> Void
    ) {
        prepare(request, until: clock.now.advanced(by: Self.patience), whenReady)
    }

    private func prepare(
        _ request: NetworkRequest, until limit: OperationInstant,
        _ whenReady: @escaping @Sendable (Result<NetworkRequest, NetworkError>) -> Void
    ) {
        queue.async { [self] in
            do throws(NetworkError) {
                let prepared = try cancellation.isSet ? nil : work.prepare(request)
                // To make the files ready may have taken long.
                guard let prepared, !cancellation.isSet else { return whenReady(.failure(.cancelledDownload)) }
                whenReady(.success(prepared))
            } catch {
                guard error.code == .destinationBusy, clock.now < limit else { return whenReady(.failure(error)) }
                _ = clock.schedule(after: .milliseconds(10)) { [self] in prepare(request, until: limit, whenReady) }
            }
        }
    }

    /// Makes the receiver of the request that was prepared.
    ///
    /// - Parameters:
    ///   - watcher: The receiver of the attempt that downloads.
    ///   - refuses: Asked on the download's queue about each head: whether nothing of its response is to be written.
    ///   - mayLeave: Asked on the session's thread whether the request may still be sent, when its turn has come.
    ///   - tellHead: Called on the download's queue with the head of a response that is the file, or its rest, and with what
    ///     becomes of what was there before.
    ///   - tellSent: Called by the session while the request's body is sent.
    ///   - tellProgress: Called on the download's queue after each portion that was written.
    ///   - tellMetrics: Called there before the end, if the session measured.
    ///   - whenDone: Called there once.
    package func makeReceiver(
        watcher: (any HopWatcher)? = nil, refuses: @escaping @Sendable (ResponseHead) -> Bool = { _ in false },
        mayLeave: @escaping @Sendable (any NetworkTask) -> Bool = { _ in true },
        tellHead: @escaping @Sendable (ResponseHead, DownloadStart) -> Void = { _, _ in },
        tellSent: @escaping @Sendable (Int64, Int64?) -> Void = { _, _ in },
        tellProgress: @escaping @Sendable (DownloadProgress) -> Void = { _ in },
        tellMetrics: @escaping @Sendable (TransferMetrics) -> Void = { _ in },
        whenDone: @escaping @Sendable (DownloadConclusion) -> Void
    ) -> any NetworkReceiver {
        DownloadReceiver(
            self, watcher: watcher, refuses: refuses, mayLeave: mayLeave, tellHead: tellHead, tellSent: tellSent,
            tellProgress: tellProgress, tellMetrics: tellMetrics, whenDone: whenDone)
    }

    /// Begins the requests of a run when those of the one before are over, which may have been given up in their middle.
    func takeTurn(_ begin: @escaping @Sendable () -> Void) {
        if turn.withLock({ $0.take(begin) }) { begin() }
    }

    /// The run that has the turn is over.
    func passTurn() { turn.withLock { $0.pass() }?() }

    /// Lets go of everything: what can be gone on with stays, if it is to, and the rest is removed.
    package func close(whenClosed: @escaping @Sendable () -> Void = {}) {
        queue.async { [self] in
            work.close()
            whenClosed()
        }
    }

    /// Lets go of everything and removes what was received: nobody will go on with it.
    func discard(whenGone: @escaping @Sendable () -> Void = {}) {
        queue.async { [self] in
            work.discard()
            whenGone()
        }
    }

    func perform(_ body: @escaping @Sendable (DownloadWork) -> Void) {
        queue.async { [self] in body(work) }
    }
}

/// A download over a session, with as many requests as the server makes necessary, but none that is sent again because
/// of a failure: that is for others to decide.
package final class DownloadRun: Sendable {
    private let request: NetworkRequest
    private let session: any NetworkSession
    private let download: Download
    private let hopWatcher: (any HopWatcher)?
    private let refuses: @Sendable (ResponseHead) -> Bool
    private let mayLeave: @Sendable (any NetworkTask) -> Bool
    private let tellHead: @Sendable (ResponseHead, DownloadStart) -> Void
    private let tellSent: @Sendable (Int64, Int64?) -> Void
    private let tellProgress: @Sendable (DownloadProgress) -> Void
    private let tellMetrics: @Sendable (TransferMetrics) -> Void
    private let whenDone: @Sendable (DownloadConclusion) -> Void
    private let steering = Locked(DownloadSteering())

    package init(
        _ request: NetworkRequest, over session: any NetworkSession, with download: Download,
        watcher: (any HopWatcher)? = nil, refuses: @escaping @Sendable (ResponseHead) -> Bool = { _ in false },
        mayLeave: @escaping @Sendable (any NetworkTask) -> Bool = { _ in true },
        tellHead: @escaping @Sendable (ResponseHead, DownloadStart) -> Void = { _, _ in },
        tellSent: @escaping @Sendable (Int64, Int64?) -> Void = { _, _ in },
        tellProgress: @escaping @Sendable (DownloadProgress) -> Void = { _ in },
        tellMetrics: @escaping @Sendable (TransferMetrics) -> Void = { _ in },
        whenDone: @escaping @Sendable (DownloadConclusion) -> Void
    ) {
        self.request = request
        self.session = session
        self.download = download
        self.hopWatcher = watcher
        self.refuses = refuses
        self.mayLeave = mayLeave
        self.tellHead = tellHead
        self.tellSent = tellSent
        self.tellProgress = tellProgress
        self.tellMetrics = tellMetrics
        self.whenDone = whenDone
    }

    /// Starts it, or lets it go on where it was suspended.
    package func resume() {
        if steering.withLock({ $0.resume() }) { download.takeTurn { [self] in ask() } } else { settle() }
    }

    /// Stops it on the wire.
    package func suspend() {
        steering.withLock { $0.suspend() }
        settle()
    }

    /// Ends it as cancelled.
    ///
    /// When this returns the file will not come to its destination any more, unless it is being renamed just now.
    package func cancel() {
        download.cancel()
        stop()
    }

    /// Ends it as cancelled, so that another run may go on with what it received.
    package func giveUp() {
        // What lies at a place on the disk is found there by whoever comes next.
        if !download.isTemporary { download.cancel() }
        stop()
    }

    private func stop() {
        switch steering.withLock({ $0.cancel() }) {
        case .ended: whenDone(.failed(.cancelledDownload))
        case .task(let task): task.cancel()
        case .noTask: break
        }
    }

    private func ask() {
        download.prepare(request) { [self] result in
            switch result {
            case .success(let request): send(request)
            case .failure(let error): end(.failed(error))
            }
        }
    }

    private func send(_ request: NetworkRequest) {
        let receiver = download.makeReceiver(
            watcher: hopWatcher, refuses: refuses, mayLeave: mayLeave, tellHead: tellHead, tellSent: tellSent,
            tellProgress: tellProgress, tellMetrics: tellMetrics
        ) { [self] conclusion in
            guard case .again = conclusion else { return end(conclusion) }
            let (isWanted, last) = steering.withLock { $0.askAgain() }
            withExtendedLifetime(last) {}
            if isWanted { ask() } else { end(conclusion) }
        }
        let task = session.makeTask(with: request, receiver: receiver)
        if steering.withLock({ $0.take(task) }) { settle() } else { task.cancel() }
    }

    /// Brings the present task to what is wanted now, unless another thread is at it: that one looks again.
    private func settle() {
        var step = steering.withLock { $0.firstStep() }
        while let present = step {
            switch present {
            case .resume(let task): task.resume()
            case .suspend(let task): task.suspend()
            }
            step = steering.withLock { $0.nextStep() }
        }
    }

    private func end(_ conclusion: DownloadConclusion) {
        let (isCancelled, last) = steering.withLock { $0.end() }
        withExtendedLifetime(last) {}
        download.close { [self] in
            download.passTurn()
            switch conclusion {
            // In its place, whoever cancelled meanwhile.
            case .saved: whenDone(conclusion)
            case .failed(let error) where error.code == .cancelled: whenDone(conclusion)
            case .answered, .failed, .again: whenDone(isCancelled ? .failed(.cancelledDownload) : conclusion)
            }
        }
    }
}

/// How far a run is, and what is wanted of its present task.
///
/// Any thread may change what is wanted, but only one at a time brings the task to it: who asks for the first step and gets
/// one does it, without a lock, and asks for the next until there is none. So no step that is late undoes a newer one.
package struct DownloadSteering {
    /// What is to be asked of a task.
    package enum Step {
        case resume(any NetworkTask)
        case suspend(any NetworkTask)
    }

    /// What a cancellation finds.
    package enum Cancelled {
        /// Nothing had begun: this is the end.
        case ended
        case task(any NetworkTask)
        /// No task is there, or none any more.
        case noTask
    }

    private enum State {
        case ready
        case preparing
        case running(any NetworkTask, isResumed: Bool)
        case ended
    }

    private var state = State.ready
    private var isSuspended = false
    private var isCancelled = false
    private var settling = RepeatFlag()

    package init() {}

    /// Lets it go on; true if it is to be begun.
    package mutating func resume() -> Bool {
        isSuspended = false
        guard case .ready = state else { return false }
        state = .preparing
        return true
    }

    package mutating func suspend() {
        isSuspended = true
    }

    package mutating func cancel() -> Cancelled {
        isCancelled = true
        switch state {
        case .ready:
            state = .ended
            return .ended
        case .running(let task, _): return .task(task)
        case .preparing, .ended: return .noTask
        }
    }

    /// Another request is about to be made, in the place of the last; false if it is not wanted any more.
    ///
    /// The last task is handed out, for whoever asks to let it go.
    package mutating func askAgain() -> (isWanted: Bool, last: (any NetworkTask)?) {
        guard !isCancelled else { return (false, nil) }
        let last = task
        state = .preparing
        return (true, last)
    }

    /// Takes the task that was made; false if it is to be cancelled at once.
    package mutating func take(_ task: any NetworkTask) -> Bool {
        state = .running(task, isResumed: false)
        return !isCancelled
    }

    /// The first step of a thread that wants to bring the task to what is wanted; nil if another one is at it.
    package mutating func firstStep() -> Step? {
        settling.request() ? nextStep() : nil
    }

    /// The step that comes after one that was done.
    package mutating func nextStep() -> Step? {
        guard !isCancelled, case .running(let task, let isResumed) = state, isResumed == isSuspended else {
            settling.stop()
            return nil
        }
        state = .running(task, isResumed: !isResumed)
        return isSuspended ? .suspend(task) : .resume(task)
    }

    /// Whether it was cancelled before this end, and the last task, for whoever asks to let it go.
    package mutating func end() -> (isCancelled: Bool, last: (any NetworkTask)?) {
        let last = task
        state = .ended
        return (isCancelled, last)
    }

    private var task: (any NetworkTask)? {
        if case .running(let task, _) = state { task } else { nil }
    }
}

/// What came of a response and was not yet written: filled by the session's thread, emptied by the download's queue.
struct DownloadInbox {
    /// What is worked off at once.
    struct Batch {
        var head: ResponseHead?
        var bytes: [UInt8]
        var metrics: TransferMetrics?
        /// The end, if it came; the error in it is nil if the response is complete.
        var end: Result<Void, NetworkError>?
        /// Whether the transfer was held, and may go on now.
        var proceeds: Bool
    }

    /// How many bytes may wait before the transfer is held.
    static let capacity = 256 << 10
    /// So many are worth waking the queue for, where more may come at once.
    static let portion = 128 << 10

    /// Whether the queue must be set to work.
    enum Need: Equatable {
        case none, now
        /// When the session's thread has nothing else to do.
        case soon
    }

    private var head: ResponseHead?
    private var bytes: [UInt8] = []
    private var metrics: TransferMetrics?
    private var end: Result<Void, NetworkError>?
    private var isHeld = false
    /// Whether the queue is working.
    ///
    /// It also takes what arrives meanwhile.
    private var working = RepeatFlag()
    /// Whether nobody wants the bytes any more.
    private var dropsBytes = false

    /// Whether so many bytes more are enough for the transfer to be held.
    func isFilled(by count: Int) -> Bool { !isHeld && !dropsBytes && bytes.count + count >= Self.capacity }

    // Each returns whether the queue must be set to work.

    mutating func put(_ head: ResponseHead) -> Bool {
        self.head = head
        return startWorking()
    }

    mutating func put(_ new: UnsafeRawBufferPointer, isHeld: Bool) -> Need {
        if isHeld { self.isHeld = true }
        if !dropsBytes { bytes += new }
        if !isHeld, bytes.count < Self.portion { return working.isRunning || bytes.isEmpty ? .none : .soon }
        return startWorking() ? .now : .none
    }

    /// What was put off is due.
    mutating func settle() -> Bool { !bytes.isEmpty && startWorking() }

    mutating func put(_ metrics: TransferMetrics) -> Bool {
        self.metrics = metrics
        return startWorking()
    }

    mutating func put(end error: NetworkError?) -> Bool {
        end = error.map { .failure($0) } ?? .success(())
        return startWorking()
    }

    /// From now on only the end counts.
    mutating func dropBytes() {
        dropsBytes = true
        bytes = []
    }

    /// Hands out what is there, and takes memory for what comes next; nil if nothing is there.
    mutating func take(_ memory: consuming [UInt8]) -> Batch? {
        guard head != nil || metrics != nil || end != nil || !bytes.isEmpty || isHeld else {
            working.stop()
            return nil
        }
        memory.removeAll(keepingCapacity: true)
        let batch = Batch(head: head, bytes: bytes, metrics: metrics, end: end, proceeds: isHeld)
        (head, metrics, end, isHeld) = (nil, nil, nil, false)
        bytes = memory
        return batch
    }

    private mutating func startWorking() -> Bool { working.request() }
}
