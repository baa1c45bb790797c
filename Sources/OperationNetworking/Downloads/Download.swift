// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import OperationCore

/// The file work of a download, which may consist of several requests in sequence.
///
/// A ``DownloadTask`` calls `prepare` for each request, and `close` at the end. One thread at a time performs the work
/// with files, in the order of the calls. A transfer that is faster than the disk is held.
///
/// Work that may take long is done on the download's own queue. Brief work is done on the calling thread if that thread
/// may block, and otherwise on a thread of ``EvaluationPool``, which also evaluates the response. So a small download
/// needs few thread switches.
package final class Download: Sendable {
    /// A piece of work, which adds closures to call after all work that was added in the meantime.
    typealias Job = @Sendable (DownloadWork, inout [@Sendable () -> Void]) -> Void

    /// The maximum time to wait for a destination that another download uses.
    private static let maximumWait = Duration.seconds(1)

    private let queue = DispatchQueue(label: "OperationKit.Download", autoreleaseFrequency: .workItem)
    private let clock: any OperationClock
    private let cancellation = OneWayFlag()
    /// Whether only this object knows the partial file.
    let isTemporary: Bool
    /// The first download of the same operation to the same destination, or `nil` if this is the first one.
    private let first: Download?
    /// The tasks of this download and of later downloads of the operation that wait for their turn to use the files.
    private let turn = Locked(DeliveryQueue<@Sendable () -> Void>())
    /// Whether the download ends without waiting until the disk has stored the file, and without reading the file
    /// again.
    let endsBriefly: Bool
    private let jobs = Locked(DeliveryQueue<Job>())
    // Sendable: only used by the thread that delivers the jobs.
    private nonisolated(unsafe) let work: DownloadWork

    package init(
        to destination: DownloadDestination, options: DownloadOptions = DownloadOptions(),
        clock: any OperationClock = .system, following first: Download? = nil,
        keptBytes: Int = DownloadWork.usualKeptBytes,
        accepts: @escaping @Sendable (ResponseHead) -> Bool = { _ in true }
    ) {
        self.clock = clock
        self.first = first
        isTemporary = destination.isTemporary
        endsBriefly = (isTemporary || !options.isDurable) && options.checksum == nil
        work = DownloadWork(
            to: destination, options: options, clock: clock, cancellation: cancellation,
            keptBytes: keptBytes, accepts: accepts)
    }

    /// Cancels the work with files, but not the task of the request, which the caller must cancel.
    ///
    /// Received bytes are kept if the download can be resumed. After this method returns, the file is not moved to its
    /// destination, unless the move has already begun.
    package func cancel() { cancellation.set() }

    /// Whether the download was canceled, so that it cannot be resumed with this object.
    var isCancelled: Bool { cancellation.isSet }

    /// Prepares the files and returns the request to send, with `Range` and `If-Range` if there is a partial file.
    ///
    /// A canceled download to the same destination may not have released its partial file yet. In this case, the method
    /// waits for it.
    package func prepare(
        _ request: NetworkRequest, whenReady: @escaping @Sendable (Result<NetworkRequest, NetworkError>) -> Void
    ) {
        prepare(request, until: clock.now.advanced(by: Self.maximumWait), whenReady)
    }

    private func prepare(
        _ request: NetworkRequest, until limit: OperationInstant,
        _ whenReady: @escaping @Sendable (Result<NetworkRequest, NetworkError>) -> Void
    ) {
        perform(isBrief: BorrowedThread.mayBlock) { [self] work, _ in
            do throws(NetworkError) {
                let prepared = try cancellation.isSet ? nil : work.prepare(request)
                // The preparation of the files may have taken long.
                guard let prepared, !cancellation.isSet else { return whenReady(.failure(.cancelledDownload)) }
                whenReady(.success(prepared))
            } catch {
                guard error.code == .destinationBusy, clock.now < limit else { return whenReady(.failure(error)) }
                _ = clock.schedule(after: .milliseconds(10)) { [self] in prepare(request, until: limit, whenReady) }
            }
        }
    }

    /// Starts a task as soon as the previous task has ended, even if that task was abandoned.
    func takeTurn(_ begin: @escaping @Sendable () -> Void) {
        if let first { return first.takeTurn(begin) }
        if turn.withLock({ $0.append(begin) }) { passTurn() }
    }

    /// Ends the turn of the current task, and starts the next one.
    func passTurn() {
        if let first { return first.passTurn() }
        turn.withLock { $0.next() }?()
    }

    /// Releases the files, and keeps or removes the partial file, as the options and the response require.
    package func close(whenClosed: @escaping @Sendable () -> Void = {}) {
        perform { work, after in
            work.close()
            after.append(whenClosed)
        }
    }

    /// Releases the files and removes the partial file, because the download will not be resumed.
    func discard(whenGone: @escaping @Sendable () -> Void = {}) {
        perform { work, after in
            work.discard()
            after.append(whenGone)
        }
    }

    /// Performs work after the work that was added before.
    ///
    /// - Parameter isBrief: Whether the work writes few bytes, and does not wait until the disk has stored them.
    func perform(isBrief: Bool = false, _ job: @escaping Job) {
        guard jobs.withLock({ $0.append(job) }) else { return }
        if !isBrief {
            queue.async { self.deliver() }
        } else if BorrowedThread.mayBlock {
            deliver()
        } else {
            EvaluationPool.shared.run { self.deliver() }
        }
    }

    private func deliver() {
        var after: [@Sendable () -> Void] = []
        while let job = jobs.withLock({ $0.next() }) { job(work, &after) }
        for call in after { call() }
    }
}

/// The progress of a ``DownloadTask``, and the order for the task of its current request.
package struct DownloadSteering {
    /// The state of a download when it is canceled.
    package enum Cancelled {
        /// The download had not begun, so this is its end.
        case ended
        case task(any NetworkTask)
        /// There is no task.
        case noTask
    }

    private enum State {
        case ready
        case preparing
        case running(PauseOrderTarget)
        case ended
    }

    private var state = State.ready
    private var isSuspended = false { didSet { changes += 1 } }
    private var isCancelled = false
    /// Whether a session received a request, which it may have sent.
    package private(set) var hasPassedRequest = false
    /// The number of changes of `isSuspended`, which is the number of the present order.
    private var changes = 0
    /// The number of the newest order that the download received.
    private var lastFollowed = Int.min

    package init() {}

    /// Records that the download is resumed, and returns whether it must be started.
    package mutating func resume() -> Bool {
        isSuspended = false
        guard case .ready = state else { return false }
        state = .preparing
        return true
    }

    package mutating func suspend() { isSuspended = true }

    /// Follows an order unless it is outdated, and returns whether the download must be started.
    package mutating func follow(_ order: PauseOrder) -> Bool {
        guard order.number > lastFollowed else { return false }
        lastFollowed = order.number
        guard order.isSuspended else { return resume() }
        suspend()
        return false
    }

    package mutating func cancel() -> Cancelled {
        isCancelled = true
        switch state {
        case .ready:
            state = .ended
            return .ended
        case .running(let target): return .task(target.task)
        case .preparing, .ended: return .noTask
        }
    }

    /// Prepares for another request, and returns whether it is still wanted.
    ///
    /// The method also returns the last task, so that the caller releases it without holding the lock.
    package mutating func askAgain() -> (isWanted: Bool, last: PauseOrderTarget?) {
        guard !isCancelled else { return (false, nil) }
        let last = target
        state = .preparing
        return (true, last)
    }

    /// Stores the task, and returns `false` if the task must be canceled immediately.
    package mutating func take(_ target: PauseOrderTarget) -> Bool {
        state = .running(target)
        if !isCancelled { hasPassedRequest = true }
        return !isCancelled
    }

    /// The order for the current task, or `nil` if there is no task or the download was canceled.
    package var wanted: (target: PauseOrderTarget, order: PauseOrder)? {
        guard !isCancelled, let target else { return nil }
        return (target, PauseOrder(number: changes, isSuspended: isSuspended))
    }

    /// Returns whether the download was canceled, and the last task, so that the caller releases it without holding the
    /// lock.
    package mutating func end() -> (isCancelled: Bool, last: PauseOrderTarget?) {
        let last = target
        state = .ended
        return (isCancelled, last)
    }

    private var target: PauseOrderTarget? {
        if case .running(let target) = state { target } else { nil }
    }
}

/// The received but unwritten parts of a response, which the session's thread adds and the download's queue removes.
struct DownloadInbox {
    /// The parts to process together.
    struct Batch {
        var head: ResponseHead?
        var bytes: [UInt8]
        var metrics: TransferMetrics?
        /// The end if it was received, which is a success if the response is complete.
        var end: Result<Void, NetworkError>?
        /// Whether the transfer was held and can now proceed.
        var proceeds: Bool
    }

    /// The number of waiting bytes at which the transfer is held.
    static let capacity = 256 << 10
    /// The number of waiting bytes at which the queue starts to work, even if more bytes may arrive soon.
    static let portion = 128 << 10

    /// Whether the caller must start the work on the queue.
    enum Need: Equatable {
        case none, now
        /// The work must start when the session's thread has nothing else to do.
        case soon
    }

    private var head: ResponseHead?
    private var bytes: [UInt8] = []
    private var metrics: TransferMetrics?
    private var end: Result<Void, NetworkError>?
    private var isHeld = false
    /// Whether the queue is working.
    ///
    /// The queue also processes the parts that arrive in the meantime.
    private var working = RepeatFlag()
    /// Whether further bytes are ignored.
    private var dropsBytes = false

    /// Returns whether the given number of bytes would fill the inbox, so that the transfer must be held.
    func isFilled(by count: Int) -> Bool { !isHeld && !dropsBytes && bytes.count + count >= Self.capacity }

    /// Whether the waiting parts are the end of a complete response with few bytes.
    var isBrief: Bool { if case .success = end { bytes.count <= Self.portion } else { false } }

    // Each method returns whether the work must start, unless it never has to.

    mutating func put(_ head: ResponseHead) -> Need {
        self.head = head
        return working.isRunning ? .none : .soon
    }

    mutating func put(_ new: UnsafeRawBufferPointer, isHeld: Bool) -> Need {
        if isHeld { self.isHeld = true }
        if !dropsBytes { bytes += new }
        if !isHeld, bytes.count < Self.portion { return working.isRunning || bytes.isEmpty ? .none : .soon }
        return working.request() ? .now : .none
    }

    /// Returns whether the deferred work must start now.
    mutating func settle() -> Bool { (head != nil || !bytes.isEmpty) && working.request() }

    /// Adds the metrics, which the end follows.
    mutating func put(_ metrics: TransferMetrics) { self.metrics = metrics }

    mutating func put(end error: NetworkError?) -> Bool {
        end = error.map { .failure($0) } ?? .success(())
        return working.request()
    }

    /// Ignores all further parts except the end.
    mutating func dropBytes() {
        dropsBytes = true
        bytes = []
    }

    /// Returns the waiting parts and uses the given memory for the next ones, or returns `nil` if there are none.
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
}
