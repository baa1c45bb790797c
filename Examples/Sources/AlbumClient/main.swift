// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

// A complete client of a small service: AlbumClient <URL> <cover to upload> <folder for covers>
//
// Scripts/try-album-client runs the client against a server in Python.

import Foundation
import OperationNetworking

struct Album: Decodable, Sendable {
    let id: Int
    let title: String
}

/// The three requests of the service.
struct AlbumService {
    let base: NetworkBase

    func list() -> EndpointOperation<[Album]> { base.get("albums") }

    func add(_ title: String, cover: URL) throws -> EndpointOperation<Album> {
        var form = MultipartForm()
        form.add("title", title)
        form.add("cover", file: try FileRegion(cover))
        return base.send(body: try .multipart(form), to: "albums")
    }

    func cover(of album: Album, into folder: URL) -> NetworkDownloadOperation<URL> {
        base.download("albums/\(album.id)/cover", to: .folder(folder))
    }
}

let arguments = CommandLine.arguments
guard arguments.count == 4, let address = URL(string: arguments[1]) else {
    print("usage: AlbumClient <URL> <cover to upload> <folder for covers>")
    exit(2)
}
let albums = AlbumService(base: NetworkBase(address))

let add = try albums.add("Kind of Blue", cover: URL(filePath: arguments[2]))
add.uploadProgressHandler = { print("  sent", $0) }
let added = try await add.run()
print("added \(added.title) as number \(added.id)")

print("there are", try await albums.list().run().map(\.title))

let download = albums.cover(of: added, into: URL(filePath: arguments[3]))
download.downloadProgressHandler = { print("  received", $0) }
print("the cover is at", try await download.run().path())
