// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What only some entries of a queue have.
final class EntryDetails: Sendable {
    let name: String?

    init(name: String?) { self.name = name }
}
