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
/// The file is there while the evaluator runs. It is removed afterwards, unless its URL is the result.
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
    /// is written there. What `validate(_:)` and the evaluator say comes afterwards; a file that they refuse stays.
    public final var destination: DownloadDestination {
        get { saving.withLock { $0.destination } }
        set { saving.withLock { $0.destination = newValue } }
    }

    /// How the file is written at a ``destination``, and what is asked of it.
    ///
    /// To be set before the start.
    public final var downloadOptions: DownloadOptions {
        get { saving.withLock { $0.options } }
        set { saving.withLock { $0.options = newValue } }
    }

    /// The file at the ``destination``, when it is there.
    public final var downloadedFile: DownloadedFile? { saving.withLock { $0.file } }

    override var operationSession: any NetworkSession {
        let (destination, options) = saving.withLock { ($0.destination, $0.options) }
        guard destination != .temporary else { return super.operationSession }
        let (rules, clock) = (responseRules, clock)
        return SavingSession(over: super.operationSession.withPolicy) { request in
            let accepted = request.headers.values("Accept")
            return Download(to: destination, options: options, clock: clock) { head in
                rules.accepts(head) && rules.contentTypes.accepts(head.headers["Content-Type"], requested: accepted)
            }
        } didSave: { [weak self] file in
            self?.saving.withLock { $0.file = file }
        }
    }

    /// Writes the body to a temporary file, or takes the file that lies at the ``destination``.
    open override func makeCollector(for head: ResponseHead) throws -> ResponseCollector<URL> {
        guard destination == .temporary else { return SavedFileCollector { [weak self] in self?.downloadedFile?.url } }
        return try TemporaryFileCollector(in: temporaryFolder)
    }

    override func didEvaluate(_ result: ResultType, _ collector: ResponseCollector<URL>) {
        guard let collector = collector as? TemporaryFileCollector else { return }
        if result as? URL == collector.url { collector.keep() } else { collector.remove() }
    }
}
