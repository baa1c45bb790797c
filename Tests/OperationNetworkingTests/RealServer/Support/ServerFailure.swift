// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// An error that occurs when a server of the tests cannot be started.
struct ServerFailure: Error, CustomStringConvertible {
    let description: String
}
