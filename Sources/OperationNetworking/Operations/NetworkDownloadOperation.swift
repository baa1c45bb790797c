// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A request whose response is written to a temporary file, from which the evaluator makes a result.
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
open class NetworkDownloadOperation<ResultType: Sendable>: NetworkOperation<URL, ResultType>, @unchecked Sendable {
    // Sendable: it adds no state.

    package override var isPlain: Bool { type(of: self) == NetworkDownloadOperation<ResultType>.self }

    /// Where the temporary file is made: the system's folder for such files, unless a subclass says another.
    ///
    /// A file can be moved at no cost only within its own volume.
    open var temporaryFolder: URL { FileManager.default.temporaryDirectory }

    /// Writes the body to a temporary file.
    open override func makeCollector(for head: ResponseHead) throws -> ResponseCollector<URL> {
        try TemporaryFileCollector(in: temporaryFolder)
    }

    override func didEvaluate(_ result: ResultType, _ collector: ResponseCollector<URL>) {
        guard let collector = collector as? TemporaryFileCollector else { return }
        if result as? URL == collector.url { collector.keep() } else { collector.remove() }
    }
}
