// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking

// Requests as classes, for requests that are created in many files or contain more code.

/// The base class of the requests to the service.
class AlbumRequest<ResultType: Sendable>: EndpointOperation<ResultType>, @unchecked Sendable {
    // Sendable: the class has no mutable state.
    private let service: AlbumService

    init(from service: AlbumService) {
        self.service = service
        super.init()
        name = "\(Self.self)"
    }

    override var base: NetworkBase { service.base }
}

/// A request for all albums.
final class AlbumList: AlbumRequest<[Album]>, @unchecked Sendable {
    override var endpoint: Endpoint<[Album]> { .get("albums") }
}

/// A request for one album.
final class AlbumDetails: AlbumRequest<Album>, @unchecked Sendable {
    // Sendable: the class has no mutable state.
    private let id: Int

    init(_ id: Int, from service: AlbumService) {
        self.id = id
        super.init(from: service)
        name = "album \(id)"
    }

    override var endpoint: Endpoint<Album> { .get("albums/\(id)") }
}
