// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A download from a service, whose request the base makes.
final class EndpointDownload: NetworkDownloadOperation<URL>, @unchecked Sendable {
    // Sendable: it adds nothing that changes.

    private let makeEndpointRequest: @Sendable (NetworkBase, NetworkAttempts) throws -> NetworkRequest
    private let base: NetworkBase

    init<Ignored: Sendable>(_ endpoint: Endpoint<Ignored>, at base: NetworkBase) {
        (makeEndpointRequest, self.base) = ({ try endpoint.request(at: $0, for: $1) }, base)
        super.init(RequestDraft(head: .none), base.session, nil)
        take(base)
    }

    package override var isPlain: Bool { true }

    override func makeRequest() throws -> NetworkRequest { try makeEndpointRequest(base, networkAttempts) }

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
        download(Endpoint<Data>.get(path, query), to: destination)
    }

    /// Downloads from a URL of the service to a place on disk.
    ///
    /// The result is the file. A temporary one stays until you remove it.
    ///
    /// - Parameters:
    ///   - url: The URL, absolute or relative to the base: see ``Endpoint/at(_:allowsOtherOrigin:)``.
    ///   - allowsOtherOrigin: Whether the URL may have another scheme, host or port than the base, as that of a file on a
    ///     content delivery network. The default is `false`. The headers and the credentials of the base are not sent to
    ///     another origin.
    ///   - destination: Where the file is put.
    public func download(
        _ url: URL, allowsOtherOrigin: Bool = false, to destination: DownloadDestination = .temporary
    ) -> NetworkDownloadOperation<URL> {
        download(Endpoint<Data>.get("").at(url, allowsOtherOrigin: allowsOtherOrigin), to: destination)
    }

    /// Downloads what an endpoint asks for, with its method, its fields and its body, to a place on disk.
    ///
    /// Nothing is decoded: the result is the file. A temporary one stays until you remove it.
    public func download<ResultType: Sendable>(
        _ endpoint: Endpoint<ResultType>, to destination: DownloadDestination = .temporary
    ) -> NetworkDownloadOperation<URL> {
        let operation = EndpointDownload(endpoint, at: self)
        operation.destination = destination
        return operation
    }
}
