// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

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
