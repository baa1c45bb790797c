// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

/// What the service knows: albums, each with a title and a cover.
struct Album: Codable, Sendable, Equatable {
    var title: String
    var year: Int
}

/// The requests of the service, each as a value.
enum Albums {
    static func list(since year: Int) -> Endpoint<[Album]> { .get("albums", ["since": year]) }

    static func add(_ album: Album, cover: Data) throws -> Endpoint<Album> {
        var form = MultipartForm()
        form.add("title", album.title)
        form.add("year", "\(album.year)")
        form.add("cover", cover, fileName: "cover.png")
        return .post("albums", body: try .multipart(form))
    }
}
