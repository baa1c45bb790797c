// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// An album of the service.
struct Album: Codable, Sendable, Equatable {
    var id: Int
    var title: String
    var year: Int
}

/// A song of an album.
struct Song: Decodable, Sendable, Equatable {
    var title: String
    var seconds: Int
}

/// The tokens that the service returns for a name and a password.
///
/// Requests contain the access token. The refresh token provides new tokens.
struct Tokens: Decodable, Sendable {
    var access: String
    var refresh: String
}
