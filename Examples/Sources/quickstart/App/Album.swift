// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What the service knows.
struct Album: Codable, Sendable, Equatable {
    var id: Int
    var title: String
    var year: Int
}

/// One song of an album.
struct Song: Decodable, Sendable, Equatable {
    var title: String
    var seconds: Int
}

/// What one gets for a name and a password: the one goes into requests, the other buys a new pair.
struct Tokens: Decodable, Sendable {
    var access: String
    var refresh: String
}
