// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationNetworking

// Requests as classes: for those that are made in many places, or do more than a request.

/// What the requests of the service have in common.
class AlbumRequest<ResultType: Sendable>: EndpointOperation<ResultType>, @unchecked Sendable {
    // Sendable: nothing here changes.
    private let service: AlbumService

    init(from service: AlbumService) {
        self.service = service
        super.init()
        name = "\(Self.self)"
    }

    override var base: NetworkBase { service.base }
}

/// All albums.
final class AlbumList: AlbumRequest<[Album]>, @unchecked Sendable {
    override var endpoint: Endpoint<[Album]> { .get("albums") }
}

/// One album.
final class AlbumDetails: AlbumRequest<Album>, @unchecked Sendable {
    // Sendable: nothing here changes.
    private let id: Int

    init(_ id: Int, from service: AlbumService) {
        self.id = id
        super.init(from: service)
        name = "album \(id)"
    }

    override var endpoint: Endpoint<Album> { .get("albums/\(id)") }
}
