// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
@_spi(Subclassing) import OperationCore

/// The base class of all operations on files.
///
/// A file operation reports its progress. The operation blocks the thread that starts it, so add the operation to a
/// queue or call `run()`. You cannot subclass this class outside the package.
///
/// If you cancel the operation, its cancellation handler is called immediately. The operation ends when its current
/// system call has returned and the operation has removed its temporary files.
public class FileOperation<ResultType: Sendable>: SyncOperation<ResultType, FileOperationError>, MeasuredOperation,
    @unchecked Sendable
{
    // Sendable: it keeps its state behind a lock.

    private struct Settings {
        var progressHandler: (@Sendable (FileProgress) -> Void)?
        var mainActorHandlers: [@MainActor (FileProgress) -> Void] = []
        var fraction: Double?
        var files = FileSystem()
    }

    private let settings = Locked(Settings())

    override init() {
        super.init()
    }

    /// A closure that is called on the `callbackQueue` with the progress of the work.
    ///
    /// The operation reports its progress after each mebibyte or after each hundredth of the total, whichever is
    /// larger. The operation also reports its progress after each hundred items, and when the work is complete.
    ///
    /// If the callback queue is serial, the reports arrive in increasing order, before the handler for the outcome is
    /// called. Before a success, the last report shows complete progress. After a cancellation, no further call begins.
    /// The operation releases the closure when the operation ends. The default is `nil`.
    public final var progressHandler: (@Sendable (FileProgress) -> Void)? {
        get { settings.withLock { $0.progressHandler } }
        set {
            settings.release { exchange(&$0.progressHandler, with: newValue) }
            // A closure that is set too late would never be released.
            if outcome != nil { releaseProgressHandler() }
        }
    }

    /// Adds a closure that is called on the main actor with the progress of the work, regardless of the
    /// `callbackQueue`.
    ///
    /// The closure is called in addition to ``progressHandler``, with the same reports. Each call to this method adds a
    /// closure without replacing earlier ones.
    ///
    /// - Parameter handler: A closure that is called with each progress report.
    /// - Returns: This operation.
    @discardableResult
    public final func onMainActor(progress handler: @escaping @MainActor (FileProgress) -> Void) -> Self {
        settings.withLock { $0.mainActorHandlers.append(handler) }
        if outcome != nil { releaseProgressHandler() }
        return self
    }

    /// The fraction of the bytes that is complete, from 0 to 1, or `nil` while the total is unknown.
    public final var completedFraction: Double? { settings.withLock { $0.fraction } }

    /// The system calls, which tests can replace.
    package final var files: FileSystem {
        get { settings.withLock { $0.files } }
        set { settings.withLock { $0.files = newValue } }
    }

    /// Performs the work of the file operation.
    public final override func main() {
        let work = FileWork(
            files: files,
            isCancelled: { [unowned self] in isCancelled },
            report: { [unowned self] in deliver($0) })
        do throws(FileInterruption) {
            try work.checkCancellation()
            let result = try perform(work)
            work.complete()
            finish(withResult: result)
        } catch {
            if case .failed(let error) = error { finish(withError: error) }
        }
    }

    /// Does the work in a subclass.
    func perform(_ work: FileWork) throws(FileInterruption) -> ResultType {
        fatalError("\(type(of: self)) must override perform(_:).")
    }

    @_spi(Subclassing) public override func outcomeWasTold() {
        releaseProgressHandler()
    }

    private func releaseProgressHandler() {
        settings.release { settings in
            (exchange(&settings.progressHandler, with: nil), exchange(&settings.mainActorHandlers, with: []))
        }
    }

    /// Enqueues the calls of the handlers, unless the outcome is decided.
    package final func deliver(_ progress: FileProgress) {
        let (handler, mainActorHandlers) = settings.withLock { settings in
            settings.fraction = progress.fraction
            return (settings.progressHandler, settings.mainActorHandlers)
        }
        completedFractionDidChange()
        if let handler {
            enqueueBeforeOutcome(on: callbackQueue) { [self] in withExtendedLifetime(self) { handler(progress) } }
        }
        if !mainActorHandlers.isEmpty {
            enqueueBeforeOutcome(on: .main) { [self] in
                MainActor.assumeIsolated { for handler in mainActorHandlers { handler(progress) } }
                extendLifetime(self)
            }
        }
    }
}

/// The progress of a file operation, in bytes and in items.
public struct FileProgress: Sendable, Hashable {
    /// The number of bytes that were read or written.
    public let completedBytes: Int64
    /// The total number of bytes, or `nil` while the total is unknown, as for directories and devices.
    ///
    /// When the operation succeeds, this value equals ``completedBytes``.
    public let totalBytes: Int64?
    /// The number of files, directories and links that were copied or removed.
    public let completedItems: Int

    /// Creates a progress value for use in your own tests.
    ///
    /// - Parameters:
    ///   - completedBytes: The number of bytes that were read or written.
    ///   - totalBytes: The total number of bytes, or `nil` if the total is unknown.
    ///   - completedItems: The number of files, directories and links that were copied or removed. The default is 0.
    public init(completedBytes: Int64, totalBytes: Int64?, completedItems: Int = 0) {
        self.completedBytes = completedBytes
        self.totalBytes = totalBytes
        self.completedItems = completedItems
    }

    /// The fraction of the bytes that is complete, from 0 to 1, or `nil` while the total is unknown.
    public var fraction: Double? {
        guard let totalBytes else { return nil }
        return totalBytes > 0 ? min(Double(completedBytes) / Double(totalBytes), 1) : 1
    }
}

/// A meter that adds up the completed work and decides when to report it.
///
/// A report is due after each mebibyte or hundredth of the total, whichever is larger, and after each hundred items.
package struct FileProgressMeter: Sendable {
    private static let smallestStep: Int64 = 1024 * 1024
    private static let itemStep = 100

    /// The expected number of bytes, or `nil` if it is unknown.
    package var totalBytes: Int64?
    private var bytes: Int64 = 0
    private var items = 0
    private var reportedBytes: Int64 = 0
    private var reportedItems = 0

    package init() {}

    /// Adds completed bytes, and returns the progress if a report is due.
    package mutating func advance(bytes count: Int64) -> FileProgress? {
        bytes += count
        // If the file grows in the meantime, the completed bytes must not exceed the total.
        if let total = totalBytes, total < bytes { totalBytes = bytes }
        let step = max(Self.smallestStep, (totalBytes ?? 0) / 100)
        return bytes - reportedBytes >= step ? makeReport() : nil
    }

    /// Adds a completed item, and returns the progress if a report is due.
    package mutating func advanceByItem() -> FileProgress? {
        items += 1
        return items - reportedItems >= Self.itemStep ? makeReport() : nil
    }

    /// Returns the final progress, in which the total is the number of completed bytes.
    package mutating func complete() -> FileProgress {
        totalBytes = bytes
        return makeReport()
    }

    private mutating func makeReport() -> FileProgress {
        reportedBytes = bytes
        reportedItems = items
        return FileProgress(completedBytes: bytes, totalBytes: totalBytes, completedItems: items)
    }
}

/// The context of the work of one file operation, with the system calls, a buffer, the progress and the cancellation.
///
/// The context is deliberately not `Sendable` and stays on the thread on which the operation's `main()` runs.
final class FileWork {
    /// The number of bytes that are read or written between two checks for a cancellation.
    static let chunkSize = 256 * 1024

    let files: FileSystem
    private let isCancelled: () -> Bool
    private let report: (FileProgress) -> Void
    private var meter = FileProgressMeter()

    /// Memory for one chunk, which only one piece of code uses at a time.
    private lazy var buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.chunkSize, alignment: 64)
    private var hasBuffer = false

    init(files: FileSystem, isCancelled: @escaping () -> Bool, report: @escaping (FileProgress) -> Void) {
        self.files = files
        self.isCancelled = isCancelled
        self.report = report
    }

    deinit {
        if hasBuffer { buffer.deallocate() }
    }

    /// Returns the same context without cancellation and progress, for cleanup and for steps that must be completed.
    func uncancellable() -> FileWork {
        FileWork(files: files, isCancelled: { false }, report: { _ in })
    }

    func withBuffer<Result>(_ body: (UnsafeMutableRawBufferPointer) -> Result) -> Result {
        hasBuffer = true
        return withExtendedLifetime(self) { body(buffer) }
    }

    func checkCancellation() throws(FileInterruption) {
        if isCancelled() { throw .cancelled }
    }

    /// Repeats a call while a slow device has nothing to read or cannot be written, and checks for a cancellation in
    /// between.
    ///
    /// Files are opened without blocking, because a blocked call could not be canceled.
    ///
    /// - Parameter device: The device to wait for, or `nil` for other files, which need no wait.
    func patiently(
        _ device: OpenFile?, isWriting: Bool, _ body: () -> Result<Int, SystemError>
    ) throws(FileInterruption) -> Result<Int, SystemError> {
        while true {
            let result = body()
            guard let device, case .failure(SystemError(EAGAIN)) = result else { return result }
            try checkCancellation()
            files.wait(for: device, isWriting: isWriting)
        }
    }

    /// Sets the expected number of bytes, or `nil` if it is unknown.
    func expect(bytes: Int64?) {
        meter.totalBytes = bytes
    }

    func advance(bytes: Int) {
        if let progress = meter.advance(bytes: Int64(bytes)) { report(progress) }
    }

    func advanceByItem() {
        if let progress = meter.advanceByItem() { report(progress) }
    }

    /// Reports the final progress.
    func complete() {
        report(meter.complete())
    }
}
