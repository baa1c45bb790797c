// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

#if SWIFT_5_MODE
    import CatalogServiceSwift5
#else
    import CatalogService
#endif

public struct Album: Codable, Equatable, Sendable {
    public let id: Int
    public let title: String

    public init(id: Int, title: String) { (self.id, self.title) = (id, title) }
}

public struct AlbumList: Equatable, Sendable {
    public let albums: [Album]
    /// The total number of albums in the service, from a header of the response.
    public let total: Int?
}

public final class ListAlbums: CatalogOperation<AlbumList>, @unchecked Sendable {
    public override var path: String { "albums" }

    public override func read(_ response: NetworkResponse<Data>) throws -> AlbumList {
        let albums = try JSONDecoder().decode([Album].self, from: response.body)
        return AlbumList(albums: albums, total: response.headers["X-Total-Count"].flatMap { Int($0) })
    }
}

public final class GetAlbum: CatalogOperation<Album>, @unchecked Sendable {
    private let id: Int

    public init(_ id: Int, in catalog: Catalog) {
        self.id = id
        super.init(catalog)
    }

    public override var path: String { "albums/\(id)" }
}

public final class CreateAlbum: CatalogOperation<Album>, @unchecked Sendable {
    private let title: String

    public init(_ title: String, in catalog: Catalog) {
        self.title = title
        super.init(catalog)
    }

    public override var method: String { "POST" }
    public override var path: String { "albums" }
    public override func makeBody() throws -> RequestBody { try .json(["title": title]) }
}

public final class DeleteAlbum: CatalogOperation<NoContent>, @unchecked Sendable {
    private let id: Int

    public init(_ id: Int, in catalog: Catalog) {
        self.id = id
        super.init(catalog)
    }

    public override var method: String { "DELETE" }
    public override var path: String { "albums/\(id)" }
}

public final class SearchAlbums: CatalogOperation<[Album]>, @unchecked Sendable {
    private let text: String

    public init(_ text: String, in catalog: Catalog) {
        self.text = text
        super.init(catalog)
    }

    public override var path: String { "search" }
    public override var query: [String: String] { ["q": text, "limit": "20"] }
}

public final class UploadCover: CatalogOperation<Album>, @unchecked Sendable {
    private let (id, file): (Int, URL)

    public init(_ file: URL, of id: Int, in catalog: Catalog) {
        (self.id, self.file) = (id, file)
        super.init(catalog)
    }

    public override var method: String { "PUT" }
    public override var path: String { "albums/\(id)/cover" }
    public override func makeBody() throws -> RequestBody { .file(try FileRegion(file)).withContentType("image/png") }
}

/// An operation that downloads a cover.
///
/// This operation has another superclass than the other requests, but uses the same catalog.
public final class DownloadCover: NetworkDownloadOperation<URL>, @unchecked Sendable {
    private let (id, catalog): (Int, Catalog)

    public init(of id: Int, to file: URL, in catalog: Catalog) {
        (self.id, self.catalog) = (id, catalog)
        super.init()
        destination = .file(file)
        using(catalog.base)
        validate { try catalog.check($0.head, Data(contentsOf: $0.body)) }
    }

    public override func makeRequest() throws -> NetworkRequest {
        try catalog.request("albums/\(id)/cover", accepts: "*/*")
    }
}
