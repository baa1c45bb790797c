// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A server of the tests could not be started.
struct ServerFailure: Error, CustomStringConvertible {
    let description: String
}
