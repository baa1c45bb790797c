// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationNetworking

/// The reason why a download failed, with a message and the exit status of the program.
struct FileFailure: Error, Sendable, Equatable {
    let status: ExitStatus
    /// The name of the error for other programs.
    let code: String
    let message: String
    /// The status code of the response, or nil if there was no response.
    var httpStatus: Int?

    init(_ status: ExitStatus, _ code: String, _ message: String) {
        (self.status, self.code, self.message) = (status, code, message)
    }

    init(_ error: NetworkError) {
        status = Self.status(of: error)
        code = "\(error.code)"
        var text = error.message
        // The message of the library names hidden files and options that a user of opget does not know.
        if error.code == .destinationBusy { text = Self.busy }
        if error.attempts.count > 1 { text += " opget tried \(error.attempts.count) times." }
        message = text
        httpStatus = error.status
    }

    /// Returns the failure for a file that already exists.
    static func exists(_ name: String) -> FileFailure {
        FileFailure(
            .disk, "\(NetworkError.Code.destinationExists)",
            "The file \(name) already exists. Use --continue to keep it, or --overwrite to replace it.")
    }

    /// Returns the failure for a destination that is a folder, a device or a link that leads nowhere.
    static func notAFile(_ name: String) -> FileFailure {
        FileFailure(
            .disk, "\(NetworkError.Code.destinationExists)",
            "\(name) already exists, but is not a file. Choose another name with --output, or with out=NAME in a list.")
    }

    /// The failure for a file whose name another URL in the same run uses.
    static let nameTwice = FileFailure(
        .disk, "\(NetworkError.Code.destinationExists)",
        "Another URL has a file with the same name. Set another name with out=NAME in a list.")

    private static let busy =
        "Another opget process, or another URL of this one, is writing this file. Wait until it is done."

    init(_ error: FileOperationError) {
        self.init(.disk, "\(error.code)", error.message)
    }

    private static func status(of error: NetworkError) -> ExitStatus {
        switch error.code {
        case .checksumMismatch: .checksum
        case .diskFull, .destinationExists, .destinationBusy, .fileUnwritable: .disk
        case .unacceptableStatus, .unacceptableContentType, .invalidResponse, .headerTooLarge, .bodyTooLarge,
            .undecodableBody, .expansionTooLarge, .tooManyRedirects, .redirectLoop, .invalidRedirect, .insecureRedirect,
            .redirectRefused, .unexpectedLength, .evaluationFailed, .emptyResponse, SegmentOperation.wholeFile:
            .server
        case .invalidURL, .missingHost, .unsupportedScheme, .invalidHeaderName, .invalidHeaderValue, .reservedHeader:
            .usage
        default: .network
        }
    }
}
