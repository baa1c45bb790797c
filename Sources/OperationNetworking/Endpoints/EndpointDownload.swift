// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A download from a service, whose request the base makes.
final class EndpointDownload: NetworkDownloadOperation<URL>, @unchecked Sendable {
    // Sendable: it adds nothing that changes.

    private let makeEndpointRequest: @Sendable (NetworkBase) throws -> NetworkRequest
    private let base: NetworkBase

    init(at base: NetworkBase, _ makeRequest: @escaping @Sendable (NetworkBase) throws -> NetworkRequest) {
        (makeEndpointRequest, self.base) = (makeRequest, base)
        super.init(RequestDraft(head: .none), base.session, nil)
        take(base)
    }

    package override var isPlain: Bool { true }

    override func makeRequest() throws -> NetworkRequest { try makeEndpointRequest(base) }

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
        let operation = EndpointDownload(at: self) { base in
            try NetworkRequest(
                url: base.address(of: path, query: query), headers: base.headersForAnyType, options: base.options)
        }
        operation.destination = destination
        return operation
    }

    /// Downloads what an endpoint asks for, with its method, its fields and its body, to a place on disk.
    ///
    /// Nothing is decoded: the result is the file. A temporary one stays until you remove it.
    public func download<ResultType: Sendable>(
        _ endpoint: Endpoint<ResultType>, to destination: DownloadDestination = .temporary
    ) -> NetworkDownloadOperation<URL> {
        let operation = EndpointDownload(at: self) { try endpoint.request(at: $0) }
        operation.destination = destination
        return operation
    }
}
