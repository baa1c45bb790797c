// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What all file operations have in common: blocking work with a file, cancellable between chunks, with progress.
///
/// It cannot be subclassed outside of the package. The work is done on the thread on which the operation is started, so
/// start it in a queue or with `run()`. A cancelled operation tells at once that it is cancelled, and ends when the call
/// to the system that it is in has returned and what it had begun is cleared away.
public class FileOperation<ResultType: Sendable>: SyncOperation<ResultType, FileOperationError>, MeasuredOperation,
    @unchecked Sendable
{
    // Sendable: it keeps its state behind a lock.

    private struct Knobs {
        var progressHandler: (@Sendable (FileProgress) -> Void)?
        var mainActorHandlers: [@MainActor (FileProgress) -> Void] = []
        var fraction: Double?
        var files = FileSystem()
    }

    private let knobs = Locked(Knobs())

    override init() {
        super.init()
    }

    /// Called as the work goes on, on `callbackQueue`: about each mebibyte or hundredth of the whole, and at the end.
    ///
    /// It never runs backwards, its last call before a success is complete, and it is never put on the queue after the
    /// handler of the outcome. It does not begin after a cancellation. The operation releases it when it ends.
    public final var progressHandler: (@Sendable (FileProgress) -> Void)? {
        get { knobs.withLock { $0.progressHandler } }
        set {
            let old = knobs.withLock { exchange(&$0.progressHandler, with: newValue) }
            withExtendedLifetime(old) {}
            // Set too late, it would never be let go of.
            if core.withLock({ $0.machine.isTold }) { releaseProgressHandler() }
        }
    }

    /// Adds a closure that is called on the main actor as the work continues, whatever the `callbackQueue` is.
    ///
    /// It is called beside ``progressHandler``, with the same reports. Each call of this method adds a closure and replaces none.
    @discardableResult
    public final func onMainActor(progress handler: @escaping @MainActor (FileProgress) -> Void) -> Self {
        knobs.withLock { $0.mainActorHandlers.append(handler) }
        if core.withLock({ $0.machine.isTold }) { releaseProgressHandler() }
        return self
    }

    /// The share of the bytes that is done; nil while the whole is not known.
    public final var completedFraction: Double? { knobs.withLock { $0.fraction } }

    /// The system's calls, as tests want them.
    package final var files: FileSystem {
        get { knobs.withLock { $0.files } }
        set { knobs.withLock { $0.files = newValue } }
    }

    /// Does the work.
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
            guard case .failed(let error) = error else { return }
            finish(withError: error)
        }
    }

    /// The work itself; for subclasses in the package.
    func perform(_ work: FileWork) throws(FileInterruption) -> ResultType {
        fatalError("\(type(of: self)) must override perform(_:).")
    }

    package override func releaseBody() {
        releaseProgressHandler()
    }

    private func releaseProgressHandler() {
        let old = knobs.withLock { knobs in
            (exchange(&knobs.progressHandler, with: nil), exchange(&knobs.mainActorHandlers, with: []))
        }
        withExtendedLifetime(old) {}
    }

    /// Puts the calls of the handlers on their queues, unless the outcome is decided.
    package final func deliver(_ progress: FileProgress) {
        let (handler, mainActorHandlers) = knobs.withLock { knobs in
            knobs.fraction = progress.fraction
            return (knobs.progressHandler, knobs.mainActorHandlers)
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

/// How far a file operation has come.
public struct FileProgress: Sendable, Hashable {
    /// How many bytes were read or written.
    public let completedBytes: Int64
    /// How many there are; nil while nobody knows, as with directories and devices.
    ///
    /// At the end it is what was completed.
    public let totalBytes: Int64?
    /// How many files, directories and links were copied or removed.
    public let completedItems: Int

    /// Makes a progress, for tests of your own code.
    public init(completedBytes: Int64, totalBytes: Int64?, completedItems: Int = 0) {
        self.completedBytes = completedBytes
        self.totalBytes = totalBytes
        self.completedItems = completedItems
    }

    /// The share that is done, between zero and one; nil while the whole is not known.
    public var fraction: Double? {
        guard let totalBytes else { return nil }
        return totalBytes > 0 ? min(Double(completedBytes) / Double(totalBytes), 1) : 1
    }
}

/// Adds up what was done and says when it is worth telling.
///
/// That is after a mebibyte or a hundredth of the whole, whichever is more, and after each hundred files.
package struct FileProgressMeter: Sendable {
    private static let smallestStep: Int64 = 1024 * 1024
    private static let itemStep = 100

    /// How many bytes there will be; nil where nobody knows.
    package var totalBytes: Int64?
    private var bytes: Int64 = 0
    private var items = 0
    private var toldBytes: Int64 = 0
    private var toldItems = 0

    package init() {}

    /// Returns the progress if it is worth telling.
    package mutating func advance(bytes count: Int64) -> FileProgress? {
        bytes += count
        // A file that grows meanwhile never makes more of itself than there is.
        if let total = totalBytes, total < bytes { totalBytes = bytes }
        let step = max(Self.smallestStep, (totalBytes ?? 0) / 100)
        return bytes - toldBytes >= step ? tell() : nil
    }

    /// Returns the progress if it is worth telling.
    package mutating func advanceByItem() -> FileProgress? {
        items += 1
        return items - toldItems >= Self.itemStep ? tell() : nil
    }

    /// All is done, so that the whole is known, whatever was expected.
    package mutating func complete() -> FileProgress {
        totalBytes = bytes
        return tell()
    }

    private mutating func tell() -> FileProgress {
        toldBytes = bytes
        toldItems = items
        return FileProgress(completedBytes: bytes, totalBytes: totalBytes, completedItems: items)
    }
}

/// Why the work of a file operation stops before its end.
enum FileInterruption: Error {
    /// The operation was cancelled: there is nobody to tell.
    case cancelled
    case failed(FileOperationError)
}

/// What the work of one file operation has at hand: the system, a buffer, its progress, and the wish to stop.
///
/// Not Sendable on purpose: it lives on the thread on which the operation's `main()` runs.
final class FileWork {
    /// How much is read or written between two looks at whether the operation was cancelled.
    static let chunkSize = 256 * 1024

    let files: FileSystem
    private let isCancelled: () -> Bool
    private let report: (FileProgress) -> Void
    private var meter = FileProgressMeter()

    /// Memory for one chunk.
    ///
    /// Whoever uses it is done with it before anybody else is.
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

    /// The same without an end before its end and without progress: for cleaning up, and past the point of no return.
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

    /// Makes a call again for as long as a slow device has nothing to give or to take, and looks in between whether the
    /// operation was cancelled.
    ///
    /// Files are opened so that the system does not wait, or nobody could cancel it. Nil stands for a file that is none
    /// of a device: it is never waited for.
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

    /// Says how many bytes there will be, as far as that is known.
    func expect(bytes: Int64?) {
        meter.totalBytes = bytes
    }

    func advance(bytes: Int) {
        if let progress = meter.advance(bytes: Int64(bytes)) { report(progress) }
    }

    func advanceByItem() {
        if let progress = meter.advanceByItem() { report(progress) }
    }

    /// Tells of the end, whatever was told before.
    func complete() {
        report(meter.complete())
    }
}

/// A file URL taken apart: the whole path, the directory, and the name in it.
struct FileAddress {
    let path: PathBytes
    let url: URL

    /// Refuses a URL that names no file: that of another scheme or computer, and paths that the system cannot hold.
    init(_ url: URL, for action: FileOperationError.Action) throws(FileInterruption) {
        guard url.isFileURL, url.host ?? "" == "" || url.host == "localhost" else {
            throw .failed(FileOperationError(code: .notAFileURL, action: action, path: Self.withoutSecrets(url)))
        }
        // Foundation on Linux makes a file of that name instead of refusing the zero byte.
        let hasZero = url.absoluteString.contains("%00")
        let bytes = hasZero ? [] : url.withUnsafeFileSystemRepresentation { start in Self.bytes(at: start) }
        guard !bytes.isEmpty else {
            let shown = url.path.isEmpty ? url.absoluteString : url.path
            throw .failed(FileOperationError(code: .invalidPath, action: action, path: shown))
        }
        path = PathBytes(bytes)
        self.url = url
    }

    var description: String { path.description }

    /// The directory's path, and the name in it; nil for a path that ends in no name, such as that of the root.
    var parts: (folder: PathBytes, name: PathBytes)? {
        let slash = UInt8(ascii: "/")
        var bytes = Array(path.bytes)
        while bytes.count > 1, bytes.last == slash { bytes.removeLast() }
        let nameStart = (bytes.lastIndex(of: slash) ?? -1) + 1
        let name = PathBytes(bytes[nameStart...])
        guard nameStart < bytes.count, name != .here, name != .up else { return nil }
        let folder = bytes[..<nameStart]
        return (folder.isEmpty ? .here : PathBytes(folder), name)
    }

    /// The name in its directory, which is opened.
    func openEntry(at place: FilePlace, files: FileSystem) throws(FileInterruption) -> FolderEntry {
        guard let (folder, name) = parts else { throw .failed(place.error(.invalidPath)) }
        return FolderEntry(name, in: try files.openFolder(FolderEntry(folder)).get(at: place))
    }

    private static func bytes(at start: UnsafePointer<CChar>?) -> [UInt8] {
        guard let start else { return [] }
        return UnsafeBufferPointer(start: start, count: strlen(start)).map { UInt8(bitPattern: $0) }
    }

    /// What an error may show of a URL of another kind: no user, no password, no query.
    private static func withoutSecrets(_ url: URL) -> String {
        var shown = "\(url.scheme ?? ""):"
        if let host = url.host { shown += "//\(host)" }
        return shown + url.path
    }
}

/// What is being done, and with which file: what an error needs to know beside the system's number.
struct FilePlace {
    var action: FileOperationError.Action
    var path: String
    /// The other end of a copy or a move.
    var otherPath: String?

    init(_ action: FileOperationError.Action, _ path: String, otherPath: String? = nil) {
        self.action = action
        self.path = path
        self.otherPath = otherPath
    }

    func error(for systemError: SystemError, code: FileOperationError.Code? = nil) -> FileOperationError {
        FileOperationError(
            code: code ?? FileOperationError.Code(systemErrorNumber: systemError.number),
            action: action, path: path, otherPath: otherPath, systemErrorNumber: systemError.number)
    }

    func error(_ code: FileOperationError.Code) -> FileOperationError {
        FileOperationError(code: code, action: action, path: path, otherPath: otherPath)
    }
}
