// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An operation that writes the response to a file, from which the evaluator creates the result.
///
/// ```swift
/// func download(_ url: URL, to place: URL) -> NetworkDownloadOperation<URL> {
///     NetworkDownloadOperation<URL>(url: url, urlSession: .shared) { temporaryURL, response in
///         try FileManager.default.moveItem(at: temporaryURL, to: place)
///         return place
///     }
/// }
/// ```
///
/// The temporary file exists while the evaluator runs. Afterward, the operation removes the file unless the result is
/// its URL. After a failed attempt, the next attempt resumes with the data that was received.
///
/// If you set a ``destination``, the complete file is moved there in one step, and the operation does not remove it.
/// A later operation with the same destination resumes a download that failed or whose process was terminated:
///
/// ```swift
/// func download(_ url: URL, into folder: URL) -> NetworkDownloadOperation<URL> {
///     let operation = NetworkDownloadOperation<URL>(url: url) { file, _ in file }
///     operation.destination = .folder(folder)
///     return operation
/// }
/// ```
open class NetworkDownloadOperation<ResultType: Sendable>: NetworkOperation<URL, ResultType>, @unchecked Sendable {
    // Sendable: the state that it adds is behind a lock.

    private struct Saving {
        var destination = DownloadDestination.temporary
        var options = DownloadOptions()
        var file: DownloadedFile?
        /// The status of the file when it was moved to its destination, or nil for a temporary file.
        var published: FileStatus?
        var start: DownloadStart?
        /// The temporary file, which is kept until the end.
        var temporary: TemporaryFile?
        /// The download to a temporary file, which all attempts share, so that each attempt resumes where the last
        /// one failed.
        var download: Download?
        var isOver = false
    }

    private let saving = Locked(Saving())

    package override var isPlain: Bool { type(of: self) == NetworkDownloadOperation<ResultType>.self }

    /// The directory in which the temporary file is created.
    ///
    /// The default is the temporary directory of the system. Override this property to use another directory, because
    /// a file can be moved without copying it only within its volume.
    open var temporaryFolder: URL { FileManager.default.temporaryDirectory }

    /// The location of the downloaded file.
    ///
    /// The default is `.temporary`. Set this property before the operation starts. With any other destination, only
    /// the body of a response with an accepted status and content type is written there. The `validate(_:)` rules and
    /// the evaluator run when the file is at the destination. A file that they reject stays there unless another
    /// attempt is made.
    ///
    /// The operation removes the rejected file before the next attempt. It does not remove a file that was changed or
    /// replaced meanwhile. In this case, the operation fails with ``NetworkError/Code/destinationExists``, unless
    /// ``DownloadOptions/existingItem`` is `.replace`.
    public final var destination: DownloadDestination {
        get { saving.withLock { $0.destination } }
        set { saving.withLock { $0.destination = newValue } }
    }

    /// The options for writing and validating the file, such as its expected length and checksum.
    ///
    /// Set this property before the operation starts.
    public final var downloadOptions: DownloadOptions {
        get { saving.withLock { $0.options } }
        set { saving.withLock { $0.options = newValue } }
    }

    /// The downloaded file, or `nil` until it is complete.
    public final var downloadedFile: DownloadedFile? { saving.withLock { $0.file } }

    /// The data of an earlier download that this download resumes or discards.
    ///
    /// The value is available when the headers of the response arrive. It describes the current attempt, or the last
    /// attempt that received headers. After a failed attempt, the next attempt resumes with the data of the failed
    /// attempt.
    public final var downloadStart: DownloadStart? { saving.withLock { $0.start } }

    /// Removes the file that the evaluator rejected in the last attempt, so that the next file can replace it.
    override func prepareAttempt() throws(NetworkError) {
        let (file, published, rule) = saving.withLock { ($0.file, $0.published, $0.options.existingItem) }
        guard let file, let published else { return }
        let isRemoved: Bool
        do throws(FileOperationError) {
            isRemoved = try file.remove(ifStill: published)
        } catch {
            throw .irremovable(error)
        }
        guard isRemoved || rule == .replace else { throw .replaced(file) }
        saving.withLock { ($0.file, $0.published) = (nil, nil) }
    }

    override func attemptSession(over session: any NetworkSession) -> any NetworkSession {
        let (destination, options) = saving.withLock { ($0.destination, $0.options) }
        let isTemporary = destination.isTemporary
        let place = isTemporary ? .temporary(in: temporaryFolder) : destination
        let (rules, clock) = (responseRules, clock)
        let keptBytes = max(rules.keptErrorBytes, DownloadWork.usualKeptBytes)
        return SavingSession(over: session.withPolicy) { [weak self] request in
            let accepted = request.headers.values("Accept")
            let make = {
                Download(to: place, options: options, clock: clock, keptBytes: keptBytes) { head in
                    rules.accepts(head)
                        && rules.contentTypes.accepts(head.headers["Content-Type"], requested: accepted)
                }
            }
            return self?.begin(isTemporary, make) ?? make()
        } didStart: { [weak self] start in
            self?.saving.withLock { $0.start = start }
        } didSave: { [weak self] file, published in
            // If the operation does not take it, a temporary file is removed here.
            let temporary = isTemporary ? TemporaryFile(file.url) : nil
            self?.take(file, published, temporary)
        }
    }

    /// Returns the download of the attempt that begins.
    private func begin(_ isTemporary: Bool, _ make: () -> Download) -> Download {
        var (old, outdated): (TemporaryFile?, Download?)
        let made = make()
        let download = saving.withLock { saving in
            (saving.file, saving.published) = (nil, nil)
            swap(&old, &saving.temporary)
            guard isTemporary, !saving.isOver else { return made }
            if let download = saving.download, !download.isCancelled { return download }
            // An attempt that was abandoned was canceled, and its download with it.
            outdated = exchange(&saving.download, with: made)
            return made
        }
        outdated?.discard()
        withExtendedLifetime(old) {}
        return download
    }

    private func take(_ file: DownloadedFile, _ published: FileStatus?, _ temporary: TemporaryFile?) {
        var temporary = temporary
        saving.withLock { saving in
            guard !saving.isOver else { return }
            (saving.file, saving.published) = (file, published)
            swap(&temporary, &saving.temporary)
        }
    }

    override func beforeFailure(_ fail: @escaping @Sendable () -> Void) {
        var download: Download?
        saving.withLock { swap(&download, &$0.download) }
        // When the failure is reported, nothing is left on disk.
        if let download { download.discard(whenGone: fail) } else { fail() }
    }

    override func transfersAreOver() {
        var (download, temporary): (Download?, TemporaryFile?)
        saving.withLock { saving in
            saving.isOver = true
            swap(&download, &saving.download)
            swap(&temporary, &saving.temporary)
        }
        // The last task retains the download, and the operation retains the task.
        download?.discard()
        withExtendedLifetime(temporary) {}
    }

    /// Returns a collector whose result is the saved file.
    ///
    /// The body of a download is written to its file and does not pass through a collector. You can override this
    /// method to examine the headers, but you must return the collector of `super`. To process the body in another
    /// way, subclass `NetworkOperation<URL, …>`.
    open override func makeCollector(for head: ResponseHead) throws -> ResponseCollector<URL> {
        let (destination, file, temporary) = saving.withLock { ($0.destination, $0.file, $0.temporary) }
        guard destination.isTemporary else { return SavedFileCollector(file?.url) }
        // Nothing was saved for a response without a body.
        return SavedFileCollector(try temporary ?? .empty(in: temporaryFolder))
    }

    override func check(_ collector: AnyResponseCollector) throws(NetworkError) {
        guard !(collector is SavedFileCollector) else { return }
        throw NetworkError(
            code: .evaluationFailed, phase: .receiving,
            message:
                "A download writes its bytes to its file, so it cannot use another collector. "
                + "Return super.makeCollector(for:) in \(type(of: self)), "
                + "or subclass NetworkOperation<URL, \(ResultType.self)>.")
    }
}

/// An operation whose purpose is a file, even if its request has a body.
protocol SavingOperation {}

extension NetworkDownloadOperation: SavingOperation {}
