// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A request whose response is written to a file, from which the evaluator makes a result.
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
/// The file is there while the evaluator runs. It is removed afterwards, unless its URL is the result. An attempt that is
/// made after one that failed goes on from its bytes.
///
/// With a ``destination`` it is written there, appears in one step when it is complete, and stays; a download that failed
/// or was killed goes on from its bytes:
///
/// ```swift
/// func download(_ url: URL, into folder: URL) -> NetworkDownloadOperation<URL> {
///     let operation = NetworkDownloadOperation<URL>(url: url) { file, _ in file }
///     operation.destination = .folder(folder)
///     return operation
/// }
/// ```
open class NetworkDownloadOperation<ResultType: Sendable>: NetworkOperation<URL, ResultType>, @unchecked Sendable {
    // Sendable: what it adds is behind a lock.

    private struct Saving {
        var destination = DownloadDestination.temporary
        var options = DownloadOptions()
        var file: DownloadedFile?
        /// The status of that file when it came to its destination; nil for a temporary file.
        var published: FileStatus?
        var start: DownloadStart?
        /// The file, if it is a temporary one, until the end.
        var temporary: TemporaryFile?
        /// Of a temporary file: all attempts share it, and each goes on where the last one failed.
        var download: Download?
        var isOver = false
    }

    private let saving = Locked(Saving())

    package override var isPlain: Bool { type(of: self) == NetworkDownloadOperation<ResultType>.self }

    /// Where the temporary file is made: the system's folder for such files, unless a subclass says another.
    ///
    /// A file can be moved at no cost only within its own volume.
    open var temporaryFolder: URL { FileManager.default.temporaryDirectory }

    /// Where the file is to lie: in a temporary file.
    ///
    /// To be set before the start. With any other, the response's status and type are looked at first, and only a success
    /// is written there. What `validate(_:)` and the evaluator say comes afterwards. A file that they refuse stays,
    /// unless another attempt is made. Before that attempt, the operation removes the file. It does not remove a file that
    /// was changed or replaced meanwhile: the operation then fails with ``NetworkError/Code/destinationExists``, unless
    /// ``DownloadOptions/existingItem`` is `.replace`.
    public final var destination: DownloadDestination {
        get { saving.withLock { $0.destination } }
        set { saving.withLock { $0.destination = newValue } }
    }

    /// How the file is written, and what is asked of it: its length, its checksum.
    ///
    /// To be set before the start.
    public final var downloadOptions: DownloadOptions {
        get { saving.withLock { $0.options } }
        set { saving.withLock { $0.options = newValue } }
    }

    /// The file, when it is there.
    public final var downloadedFile: DownloadedFile? { saving.withLock { $0.file } }

    /// What was found of an earlier download, known as soon as the head of the response is there: of the present attempt, or
    /// the last one that got so far.
    ///
    /// An attempt that follows another one goes on with what that one received.
    public final var downloadStart: DownloadStart? { saving.withLock { $0.start } }

    /// Removes the file of the last attempt, which the evaluator refused, so that the next file can take its place.
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
            // If nobody takes it, a temporary one goes.
            let temporary = isTemporary ? TemporaryFile(file.url) : nil
            self?.take(file, published, temporary)
        }
    }

    /// Another attempt begins.
    private func begin(_ isTemporary: Bool, _ make: () -> Download) -> Download {
        var (old, outdated): (TemporaryFile?, Download?)
        let made = make()
        let download = saving.withLock { saving in
            (saving.file, saving.published) = (nil, nil)
            swap(&old, &saving.temporary)
            guard isTemporary, !saving.isOver else { return made }
            if let download = saving.download, !download.isCancelled { return download }
            // An attempt that was given up was cancelled, and its download with it.
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
        // Whoever is told of it finds that nothing is left.
        if let download { download.discard(whenGone: fail) } else { fail() }
    }

    override func transfersAreOver() {
        var (download, temporary): (Download?, TemporaryFile?)
        saving.withLock { saving in
            saving.isOver = true
            swap(&download, &saving.download)
            swap(&temporary, &saving.temporary)
        }
        // The last task holds on to it, and whoever has the operation to that.
        download?.discard()
        withExtendedLifetime(temporary) {}
    }

    /// Takes the file that was saved.
    ///
    /// The bytes of a download go to its file, and to no collector. A subclass may look at the head here, but must return
    /// what this gives; subclass `NetworkOperation<URL, …>` to take in the bytes in another way.
    open override func makeCollector(for head: ResponseHead) throws -> ResponseCollector<URL> {
        let (destination, file, temporary) = saving.withLock { ($0.destination, $0.file, $0.temporary) }
        guard destination.isTemporary else { return SavedFileCollector(file?.url) }
        // Of an answer that has no body nothing was saved.
        return SavedFileCollector(try temporary ?? .empty(in: temporaryFolder))
    }

    override func check(_ collector: AnyResponseCollector) throws(NetworkError) {
        guard !(collector is SavedFileCollector) else { return }
        throw NetworkError(
            code: .evaluationFailed, phase: .receiving,
            message:
                "The bytes of a download go to its file. Return super.makeCollector(for:) in \(type(of: self)), or "
                + "subclass NetworkOperation<URL, \(ResultType.self)>.")
    }
}

/// An operation whose purpose is a file, whatever it sends for it.
protocol SavingOperation {}

extension NetworkDownloadOperation: SavingOperation {}
