// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Where a jar keeps its cookies from one run of the program to the next.
///
/// A jar calls one method at a time, on a queue of its own.
public protocol CookieStorage: Sendable {
    /// The cookies that were saved last; none if nothing was.
    func load() throws -> [Cookie]

    /// Puts these cookies in the place of those that were saved before.
    func save(_ cookies: [Cookie]) throws
}
