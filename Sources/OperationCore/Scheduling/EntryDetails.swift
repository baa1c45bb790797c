// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What only some entries of a queue have.
final class EntryDetails: Sendable {
    let name: String?
    /// Makes another operation like this one, to be run if this one fails.
    let remake: (@Sendable () -> ManagedOperation)?

    init(name: String? = nil, remake: (@Sendable () -> ManagedOperation)? = nil) {
        self.name = name
        self.remake = remake
    }
}
