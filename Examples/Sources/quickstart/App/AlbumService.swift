// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

/// The album service from an app's point of view, with the common configuration of all requests.
struct AlbumService: Sendable {
    var base: NetworkBase

    /// Signs in and returns a service whose requests contain a token.
    ///
    /// If the token expires, one refresh renews the token for all requests.
    static func signIn(_ name: String, _ password: String, at plain: NetworkBase) async throws -> AlbumService {
        let first: Tokens = try await plain.send(["name": name, "password": password], to: "session").run()
        let authenticator = Authenticator(first) { tokens, request in
            try request.with("Authorization", "Bearer \(tokens.access)")
        } refresh: { old in
            try await plain.send(["refresh": old?.refresh], to: "session/refresh").run()
        }
        var base = plain
        base.authenticate(by: authenticator)
        base.retry = .standard
        return AlbumService(base: base)
    }
}

// Requests as values, in one line each.
extension AlbumService {
    /// Returns a request for a list that changes every hour.
    func charts() -> EndpointOperation<[String]> { base.get("charts").named("charts") }

    /// Returns a request for the songs of one album.
    func songs(of album: Album) -> EndpointOperation<[Song]> {
        base.get("albums/\(album.id)/songs").named("songs of \(album.id)")
    }

    /// Returns a request that adds an album with its cover.
    func add(_ album: Album, cover: Data) throws -> EndpointOperation<Album> {
        var form = MultipartForm()
        form.add("title", album.title)
        form.add("year", "\(album.year)")
        form.add("cover", cover, fileName: "cover.png")
        return base.send(body: try .multipart(form), to: "albums").named("upload")
    }

    /// Returns a download of a recording, which you can listen to offline.
    func recording(of album: Album, to file: URL) -> NetworkDownloadOperation<URL> {
        base.download("albums/\(album.id)/recording", to: .file(file)).named("recording of \(album.id)")
    }
}

// Groups of requests that depend on the responses to other requests.
extension AlbumService {
    /// Returns a group that fetches all songs of all albums.
    func everything() -> GroupOperation<[Song], GroupFailure> {
        GroupOperation { group in
            let albums = try await group.run(AlbumList(from: self))
            async let older = group.run(songs(of: albums.filter { $0.year < 1960 }))
            async let newer = group.run(songs(of: albums.filter { $0.year >= 1960 }))
            return try await older + newer
        }.named("everything")
    }

    /// Returns a group that fetches all songs of the given albums, with four requests at a time.
    func songs(of albums: [Album]) -> GroupOperation<[Song], GroupFailure> {
        GroupOperation { group in
            let lists = GroupOperation.map(albums, width: 4) { songs(of: $0) }.named("songs, 4 at a time")
            return try await group.run(lists).flatMap(\.self)
        }.named("songs of \(albums.count) albums")
    }
}
