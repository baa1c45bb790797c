// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A download from a service, whose request the base makes.
final class EndpointDownload: NetworkDownloadOperation<URL>, @unchecked Sendable {
    // Sendable: it adds nothing that changes.

    private let path: String
    private let query: [String: (any Sendable)?]
    private let base: NetworkBase

    init(_ path: String, _ query: [String: (any Sendable)?], at base: NetworkBase) {
        (self.path, self.query, self.base) = (path, query, base)
        super.init(RequestDraft(head: .url(base.url)), base.session) { file, _ in file }
        take(base)
    }

    package override var isPlain: Bool { true }

    override func makeDraft() throws -> RequestDraft {
        let request = try NetworkRequest(
            url: base.address(of: path, query: query), headers: base.headersForAnyType, options: base.options)
        return RequestDraft(head: .checked(request), options: ownTransferOptions)
    }

    override var inheritedTransferOptions: TransferOptions { base.options }
}

extension NetworkBase {
    /// Downloads something to a place on disk.
    ///
    /// ```swift
    /// func cover(of album: Int, from shop: NetworkBase, into folder: URL) -> NetworkDownloadOperation<URL> {
    ///     shop.download("albums/\(album)/cover", to: .folder(folder))
    /// }
    /// ```
    ///
    /// The result is the file. A temporary one stays until you remove it.
    public func download(
        _ path: String, _ query: [String: (any Sendable)?] = [:], to destination: DownloadDestination = .temporary
    ) -> NetworkDownloadOperation<URL> {
        let operation = EndpointDownload(path, query, at: self)
        operation.destination = destination
        return operation
    }
}
