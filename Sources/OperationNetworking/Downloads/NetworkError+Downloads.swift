// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

extension NetworkError {
    /// Creates a download error from an error of the file system.
    init(_ error: FileOperationError) {
        let code: Code
        switch error.code {
        case .noSpace: code = .diskFull
        case .alreadyExists: code = .destinationExists
        case .busy: code = .destinationBusy
        case .tooManyOpenFiles: code = .resourcesExhausted
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
        code: .cancelled, phase: .saving, message: "The download was canceled.")

    /// The complete file is at its destination, but may not survive a power failure.
    static func uncertain(_ error: FileOperationError) -> NetworkError {
        saving(
            error,
            "The complete file is at its destination, but the system did not confirm that it is stored on the disk. "
                + "A power failure could remove it. Keep the file, or remove it and download it again.")
    }

    /// Returns an error with an additional sentence before the message of a file error.
    static func saving(_ error: FileOperationError, _ sentence: String) -> NetworkError {
        let known = NetworkError(error)
        return NetworkError(
            code: known.code, phase: .saving, message: "\(sentence) \(error.message)", underlying: known.underlying)
    }

    static func wrongChecksum(_ algorithm: ChecksumAlgorithm) -> NetworkError {
        NetworkError(
            code: .checksumMismatch, phase: .saving,
            message: "The file does not have the expected \(algorithm) checksum, and was removed.")
    }

    /// The evaluator rejected the file, and the file cannot be removed before the next attempt.
    static func irremovable(_ error: FileOperationError) -> NetworkError {
        saving(
            error,
            "The operation rejected the downloaded file, and could not remove it before another attempt. "
                + "Remove the file and start a new operation.")
    }

    /// Another file has replaced the file that the evaluator rejected.
    static func replaced(_ file: DownloadedFile) -> NetworkError {
        NetworkError(
            code: .destinationExists, phase: .saving,
            message:
                "The operation rejected the file that it downloaded to \(file.url.path), and that file was changed or "
                + "replaced before another attempt. The operation did not remove the new file. "
                + "Remove it and start a new operation, or set existingItem to replace.")
    }
}
