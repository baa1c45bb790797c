// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// How a file is written.
public struct FileWriteOptions: Sendable, Hashable {
    /// How the new content comes to stand at the destination: ``Mode/replacing``.
    public var mode: Mode

    /// Whether directories that are missing on the way to the destination are made: false.
    public var createsDirectories: Bool

    /// The permission bits, less the process's `umask`.
    ///
    /// Nil, as from the start: those of the file that is replaced, else 0o644 less the `umask`. Choose 0o600 for secrets.
    public var permissions: UInt16?

    /// Whether the file and its name are brought to the disk before the operation succeeds, to survive a power cut: true.
    public var isDurable: Bool

    /// Options with these values.
    public init(
        mode: Mode = .replacing, createsDirectories: Bool = false, permissions: UInt16? = nil, isDurable: Bool = true
    ) {
        self.mode = mode
        self.createsDirectories = createsDirectories
        self.permissions = permissions
        self.isDurable = isDurable
    }

    /// The default values, but for a file that must not exist yet.
    public static let creatingNew = FileWriteOptions(mode: .creatingNew)

    /// How new content comes to stand at the destination.
    public struct Mode: Hashable, Sendable {
        private let name: String

        /// In one step: readers see the old content or the new, and a failure leaves the old.
        ///
        /// A symbolic link at the destination is replaced itself; what it leads to stays as it is.
        public static let replacing = Mode(name: "replacing")

        /// In one step, and only if there is nothing yet: of many that try at once, one succeeds.
        public static let creatingNew = Mode(name: "creatingNew")

        /// Into the file that is there, links followed: for devices, and files whose identity must stay.
        ///
        /// Not atomic: the old content is gone at once, and a failure leaves a part of the new. Only a file that this
        /// operation made is taken away again.
        public static let inPlace = Mode(name: "inPlace")
    }
}
