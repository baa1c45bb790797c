// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// One call to the system that is about to be made: what tests intercept.
package struct FileSystemCall: Sendable {
    /// What is asked of the system.
    package enum Kind: String, Sendable, CaseIterable {
        case open, status, list, read, write, synchronize, close, setPermissions, setTimes
        case truncate, claim, freeBytes
        case makeDirectory, makeLink, makeSymbolicLink, readSymbolicLink, rename, renameExclusively, remove
    }

    /// What becomes of the call.
    package enum Verdict: Sendable, Equatable {
        /// It is made.
        case proceed
        /// It is made with at most so many bytes to read or write.
        case shorten(Int)
        /// It is not made, and seems to have failed with this number.
        case fail(Int32)
    }

    package let kind: Kind
    /// The name in question, for calls that have one.
    package let name: PathBytes?
}
