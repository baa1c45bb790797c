// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

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

extension NetworkError {
    /// What a failure of the file system means for a download.
    init(_ error: FileOperationError) {
        let code: Code
        switch error.code {
        case .noSpace: code = .diskFull
        case .alreadyExists: code = .destinationExists
        case .busy: code = .destinationBusy
        default: code = .fileUnwritable
        }
        self.init(
            code: code, phase: .saving, message: "The download cannot be saved. \(error.message)",
            underlying: .init(
                domain: "errno", number: Int(error.systemErrorNumber), text: "\(error.code) at \(error.path)"))
    }
}

extension NetworkError {
    static let cancelledDownload = NetworkError(
        code: .cancelled, phase: .saving, message: "The download was cancelled.")

    /// The file is in its place, and whether it stays there is not known.
    static func uncertain(_ error: FileOperationError) -> NetworkError {
        let known = NetworkError(error)
        return NetworkError(
            code: known.code, phase: .saving,
            message:
                "The file is in its place, whole, but could not be brought to the disk for certain: a power cut may "
                + "take it away. Keep it, or remove it and download it again. \(error.message)",
            underlying: known.underlying)
    }

    static func wrongChecksum(_ algorithm: ChecksumAlgorithm) -> NetworkError {
        NetworkError(
            code: .checksumMismatch, phase: .saving,
            message: "The file does not have the \(algorithm) checksum that was expected, and was removed.")
    }
}
