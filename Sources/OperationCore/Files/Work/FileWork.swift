// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

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
