// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension FileOperationError {
    /// What a file operation was doing.
    ///
    /// New actions may be added.
    public struct Action: Hashable, Sendable, CustomStringConvertible {
        /// The action as the beginning of a sentence.
        public let description: String

        /// Makes an action of your own; the name begins a sentence: "Reading".
        public init(_ name: String) {
            description = name
        }

        /// A file was being read.
        public static let reading = Action("Reading")
        /// A file was being written.
        public static let writing = Action("Writing")
        /// Something was being copied.
        public static let copying = Action("Copying")
        /// Something was being moved.
        public static let moving = Action("Moving")
        /// Something was being removed.
        public static let removing = Action("Removing")
        /// A checksum was being taken.
        public static let checksumming = Action("Taking the checksum of")
    }
}
