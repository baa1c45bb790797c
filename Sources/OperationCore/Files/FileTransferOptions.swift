// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// How something is copied or moved.
public struct FileTransferOptions: Sendable, Hashable {
    /// What becomes of something that stands at the destination: it stays, and the operation fails.
    public var existingItem: ExistingItemRule

    /// Whether directories that are missing on the way to the destination are made: false.
    public var createsDirectories: Bool

    /// Whether all is brought to the disk before the operation succeeds, to survive a power cut: true.
    ///
    /// Copying a directory of many small files is several times faster without.
    public var isDurable: Bool

    /// Options with these values.
    public init(existingItem: ExistingItemRule = .refuse, createsDirectories: Bool = false, isDurable: Bool = true) {
        self.existingItem = existingItem
        self.createsDirectories = createsDirectories
        self.isDurable = isDurable
    }

    /// The default values, but for a destination that may be replaced.
    public static let replacing = FileTransferOptions(existingItem: .replace)
}
