// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Whether there is something to save, and whether somebody is on the way to do it.
package struct SaveTurn: Equatable, Sendable {
    private enum State: Equatable {
        case clean
        /// Changed, and a turn was scheduled.
        case scheduled
        /// Changed, and nobody is on the way: the last turn failed.
        case unsaved
    }

    private var state = State.clean

    package init() {}

    /// Something changed: returns whether a turn is to be scheduled.
    package mutating func noteChange() -> Bool {
        defer { state = .scheduled }
        return state != .scheduled
    }

    /// A turn begins: returns whether there is something to save.
    package mutating func begin() -> Bool {
        defer { state = .clean }
        return state != .clean
    }

    /// The turn failed; what it was to save is unsaved, unless another turn is on the way already.
    package mutating func fail() {
        if state == .clean { state = .unsaved }
    }
}
