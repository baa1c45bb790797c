// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// What the file side of a download finds wrong.
extension NetworkError.Code {
    /// The volume, or the user's share of it, has no room for the file.
    public static let diskFull = Self("diskFull")
    /// Something is at the destination, and was not to be replaced.
    public static let destinationExists = Self("destinationExists")
    /// Another download writes to the same place.
    public static let destinationBusy = Self("destinationBusy")
    /// The file cannot be written; the underlying error says why.
    public static let fileUnwritable = Self("fileUnwritable")
    /// The file does not have the length that was expected.
    public static let unexpectedLength = Self("unexpectedLength")
    /// The file does not have the checksum that was expected.
    public static let checksumMismatch = Self("checksumMismatch")
}

extension NetworkError.Phase {
    /// The file was being written, checked or put in its place.
    public static let saving = Self("saving")
}
