// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore
import OperationNetworking

/// Why a file is not there: a sentence, and what the program's exit status says of it.
struct FileFailure: Error, Sendable, Equatable {
    let status: ExitStatus
    /// A name for programs.
    let code: String
    let message: String
    /// The status of the server's answer, if there was one.
    var httpStatus: Int?

    init(_ status: ExitStatus, _ code: String, _ message: String) {
        (self.status, self.code, self.message) = (status, code, message)
    }

    init(_ error: NetworkError) {
        status = Self.status(of: error)
        code = "\(error.code)"
        var text = Self.hint(error).map { "\(error.message) \($0)" } ?? error.message
        if error.attempts.count > 1 { text += " It was tried \(error.attempts.count) times." }
        message = text
        httpStatus = error.status
    }

    init(_ error: FileOperationError) {
        self.init(.disk, "\(error.code)", error.message)
    }

    private static func hint(_ error: NetworkError) -> String? {
        switch error.code {
        case .destinationExists: "Use --continue to leave it alone, or --overwrite to replace it."
        case .destinationBusy: "Another opget, or another URL of this one, is at it."
        default: nil
        }
    }

    private static func status(of error: NetworkError) -> ExitStatus {
        switch error.code {
        case .checksumMismatch: .checksum
        case .diskFull, .destinationExists, .destinationBusy, .fileUnwritable: .disk
        case .unacceptableStatus, .unacceptableContentType, .invalidResponse, .headerTooLarge, .bodyTooLarge,
            .undecodableBody, .expansionTooLarge, .tooManyRedirects, .redirectLoop, .invalidRedirect, .insecureRedirect,
            .redirectRefused, .unexpectedLength, .evaluationFailed, .emptyResponse:
            .server
        case .invalidURL, .missingHost, .unsupportedScheme, .invalidHeaderName, .invalidHeaderValue, .reservedHeader:
            .usage
        default: .network
        }
    }
}

/// What became of a file.
enum FileResult: Sendable {
    case done(FileReport)
    /// It was there already.
    case skipped(path: String)
    case failed(FileFailure)
    /// It was cancelled, and what was received stays.
    case stopped
}

/// A file that is there.
struct FileReport: Sendable, Equatable {
    var path: String
    var bytes: Int64
    var resumedBytes: Int64 = 0
    var discardedBytes: Int64 = 0
    var segments = 1
}
