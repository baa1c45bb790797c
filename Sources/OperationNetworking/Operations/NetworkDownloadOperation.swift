// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The state of a download operation.
///
/// The type is not nested in the operation's class, because it would then be generic, and each access would look up its
/// description.
private struct SavingState {
    var destination = DownloadDestination.temporary
    var options = DownloadOptions()
    var file: DownloadedFile?
    /// The status of the file when it was moved to its destination, or nil for a temporary file.
    var published: FileStatus?
    var start: DownloadStart?
    /// The temporary file, which is kept until the end.
    var temporary: SpooledFile?
    /// The download to a temporary file, which all attempts share, so that each attempt resumes where the last one
    /// failed.
    var download: Download?
    /// The download of the first attempt, unless the file is temporary.
    ///
    /// The downloads of the other attempts wait until the previous one has released the partial file.
    var first: Download?
    var isOver = false
}

/// An operation that sends a request, writes the response body to a file and creates its result from the file.
///
/// ```swift
/// func download(_ url: URL, to place: URL) -> NetworkDownloadOperation<URL> {
///     NetworkDownloadOperation<URL>(url: url, urlSession: .shared) {
///         temporaryURL, response in
///         try FileManager.default.moveItem(at: temporaryURL, to: place)
///         return place
///     }
/// }
/// ```
///
/// The temporary file exists while the evaluator runs. Afterward, the operation removes the file, unless the result is
/// the URL of the file. If the server supports range requests and identifies the version of the file, for example with
/// an `ETag` header, another attempt resumes after the last byte that the operation has received.
///
/// If the download fails or the process terminates, a later operation with the same ``destination`` can resume the
/// download. If you set a destination, the operation moves the complete file there atomically, and the file remains
/// there after the operation has succeeded:
///
/// ```swift
/// func download(_ url: URL, into folder: URL) -> NetworkDownloadOperation<URL> {
///     let operation = NetworkDownloadOperation<URL>(url: url) { file, _ in file }
///     operation.destination = .folder(folder)
///     return operation
/// }
/// ```
///
/// Guide: `Docs/Guides/Downloads.md`
open class NetworkDownloadOperation<ResultType: Sendable>: NetworkOperation<URL, ResultType>, @unchecked Sendable {
    // Sendable: the state that it adds is behind a lock.

    private let saving = Locked(SavingState())

    package override var isOfOwnClass: Bool { type(of: self) == NetworkDownloadOperation<ResultType>.self }
    package override var isBrief: Bool { hasNoOverrides && operationSession.startsTasksBriefly }
    package override var isDownload: Bool { true }

    /// The directory in which the operation creates its temporary file.
    ///
    /// The default is the system's temporary directory. If the evaluator moves the file to another volume, override
    /// this property with a directory on that volume, so that the system does not have to copy the file.
    open var temporaryFolder: URL { FileManager.default.temporaryDirectory }

    /// The location of the file that the operation downloads.
    ///
    /// The default is ``DownloadDestination/temporary``. Set this property before the operation starts. The operation
    /// writes the body only if it accepts the status and the content type of the response. The `validate(_:)` rules and
    /// the evaluator run when the file is at the destination.
    ///
    /// If a rule or the evaluator rejects the file, the file stays at the destination unless another attempt follows.
    /// Before another attempt, the operation removes the file. If other code has changed the file, the operation keeps
    /// the file and fails with ``NetworkError/Code/destinationExists``, unless ``DownloadOptions/existingItem`` is
    /// `.replace`.
    public final var destination: DownloadDestination {
        get { saving.withLock { $0.destination } }
        set { saving.withLock { $0.destination = newValue } }
    }

    /// The options that determine how the operation writes and validates the file, such as its expected checksum.
    ///
    /// Set this property before the operation starts.
    public final var downloadOptions: DownloadOptions {
        get { saving.withLock { $0.options } }
        set { saving.withLock { $0.options = newValue } }
    }

    /// The file that the operation has downloaded, or `nil` if the file is not complete.
    public final var downloadedFile: DownloadedFile? { saving.withLock { $0.file } }

    /// The amount of data from an earlier, incomplete download that the operation resumed or discarded.
    ///
    /// The value is `nil` until the response headers arrive. The value describes the last attempt that received
    /// response headers. The data can also come from a failed attempt of the same operation.
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
        return SavingSession(over: session.followingRedirects) { [weak self] request in
            let accepted = request.headers.values("Accept")
            let make = { (first: Download?) in
                Download(
                    to: place, options: options, clock: clock, following: first, keptBytes: keptBytes
                ) { head in
                    rules.accepts(head)
                        && rules.contentTypes.accepts(head.headers["Content-Type"], requested: accepted)
                }
            }
            return self?.begin(isTemporary, make) ?? make(nil)
        } didStart: { [weak self] start in
            self?.saving.withLock { $0.start = start }
        } didSave: { [weak self] file, published in
            // If the operation does not take it, a temporary file is removed here.
            let temporary = isTemporary ? SpooledFile(file.url) : nil
            self?.take(file, published, temporary)
        }
    }

    /// Returns the download of the attempt that begins.
    private func begin(_ isTemporary: Bool, _ make: (Download?) -> Download) -> Download {
        var (old, outdated): (SpooledFile?, Download?)
        let made = make(saving.withLock { $0.first })
        let download = saving.withLock { saving in
            (saving.file, saving.published) = (nil, nil)
            swap(&old, &saving.temporary)
            guard !saving.isOver else { return made }
            guard isTemporary else {
                saving.first = saving.first ?? made
                return made
            }
            if let download = saving.download, !download.isCancelled { return download }
            // An attempt that was abandoned was canceled, and its download with it.
            outdated = exchange(&saving.download, with: made)
            return made
        }
        outdated?.discard()
        extendLifetime(old)
        return download
    }

    private func take(_ file: DownloadedFile, _ published: FileStatus?, _ temporary: SpooledFile?) {
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
        var (download, first, temporary): (Download?, Download?, SpooledFile?)
        saving.withLock { saving in
            saving.isOver = true
            swap(&first, &saving.first)
            swap(&download, &saving.download)
            swap(&temporary, &saving.temporary)
        }
        // The last task retains the download, and the operation retains the task.
        download?.discard()
        extendLifetime(first)
        extendLifetime(temporary)
    }

    /// Returns the collector whose result is the URL of the downloaded file.
    ///
    /// A download operation writes the body directly to its file, so the collector receives no bytes. You can override
    /// this method to examine the headers, but you must return the collector from `super`. To process the body in
    /// another way, create a subclass of `NetworkOperation<URL, …>`.
    ///
    /// - Parameter head: The status and the headers of the response.
    /// - Throws: A ``NetworkError`` if the operation cannot create an empty temporary file for a response without a
    ///   body. The attempt then fails.
    open override func makeCollector(for head: ResponseHead) throws -> ResponseCollector<URL> {
        let (destination, file, temporary) = saving.withLock { ($0.destination, $0.file, $0.temporary) }
        guard destination.isTemporary else { return SavedFileCollector(file?.url) }
        // Nothing was saved for a response without a body.
        return SavedFileCollector(try temporary ?? SpooledFile.make(in: temporaryFolder).0)
    }

    override func check(_ collector: any AnyResponseCollector) throws(NetworkError) {
        guard !(collector is SavedFileCollector) else { return }
        throw NetworkError(
            code: .evaluationFailed, phase: .receiving,
            message:
                "A download writes its bytes to its file, so it cannot use another collector. "
                + "Return super.makeCollector(for:) in \(type(of: self)), "
                + "or subclass NetworkOperation<URL, \(ResultType.self)>.")
    }
}
