// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking

/// Requests for all music and videos of a user, in which each request depends on earlier responses.
struct MediaService: Sendable {
    struct Person: Decodable, Sendable { let id: Int }
    struct Album: Decodable, Sendable { let id: Int }
    struct Song: Decodable, Sendable { let title: String }
    struct Show: Decodable, Sendable { let id: Int }
    struct Video: Decodable, Sendable { let title: String }

    let base: NetworkBase

    func everything(of name: String) -> GroupOperation<(songs: [Song], videos: [Video]), GroupFailure> {
        GroupOperation { group in
            let person: Person = try await group.run(base.get("people/\(name)"))
            async let songs = group.run(music(of: person))
            async let videos = group.run(video(of: person))
            return try await (songs, videos)
        }
    }

    func music(of person: Person) -> GroupOperation<[Song], GroupFailure> {
        GroupOperation { group in
            let albums: [Album] = try await group.run(base.get("people/\(person.id)/albums"))
            return try await group.run(
                GroupOperation.map(albums, width: 4) { base.get("albums/\($0.id)/songs", as: [Song].self) }
            ).flatMap { $0 }
        }
    }

    func video(of person: Person) -> GroupOperation<[Video], GroupFailure> {
        GroupOperation { group in
            let shows: [Show] = try await group.run(base.get("people/\(person.id)/shows"))
            return try await group.run(
                GroupOperation.map(shows, width: 4) { base.get("shows/\($0.id)/videos", as: [Video].self) }
            ).flatMap { $0 }
        }
    }
}
