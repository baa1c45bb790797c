// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// How a download is written, and what is asked of it.
public struct DownloadOptions: Sendable {
    /// What becomes of something that stands at the destination: it stays, and the download fails.
    ///
    /// Of a file that is named it fails before anything is asked. Of one in a folder only the response says the name, so a
    /// request is sent first; it fails before any of the body is written.
    public var existingItem = ExistingItemRule.refuse

    /// Whether directories that are missing on the way to the destination are made: they are.
    public var createsDirectories = true

    /// The permission bits, less the process's `umask`: 0o644.
    ///
    /// The file has them when it is complete; until then only its owner may read it.
    public var permissions: UInt16 = 0o644

    /// Whether the file and its name are brought to the disk before the download succeeds, to survive a power cut: they are.
    ///
    /// A temporary file never is.
    public var isDurable = true

    /// How many bytes there must be; any number if nil.
    ///
    /// A response that says another number fails before a byte of it was written.
    public var expectedLength: Int64?

    /// The most bytes there may be; any number if nil.
    public var maximumLength: Int64?

    /// The checksum that the whole file must have; none is taken if nil.
    ///
    /// A file that has another is removed, and the download fails. It is not asked for once more: the next download begins
    /// anew.
    public var checksum: FileChecksum?

    /// Whether what was received stays on the disk after a failure or cancellation, for the next download to the same
    /// place to go on from: it does.
    ///
    /// It lies beside the destination under hidden names (`.operationkit-….part` and `….card`). Temporary downloads keep it
    /// only as long as their operation lives.
    public var keepsPart = true

    /// What else than the URL says that a later download is of the same file.
    ///
    /// Set it for URLs that are signed anew each time: without, another URL begins anew.
    public var resumeKey: String?

    /// After how long, at the latest, what was received is brought to the disk, for a power cut to cost no more: 5 seconds.
    ///
    /// A program that is killed loses nothing that it had written, however long this is.
    public var checkpointInterval = Duration.seconds(5)

    /// Makes options with the stated defaults.
    public init() {}
}
