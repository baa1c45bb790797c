// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Gives the place of a file that was saved while it came.
final class SavedFileCollector: ResponseCollector<URL>, TemporaryFileHolder, @unchecked Sendable {
    // Sendable: it adds only constants.

    let temporaryFile: TemporaryFile?
    private let url: URL?

    /// One that stays where it is.
    init(_ url: URL?) {
        self.url = url
        temporaryFile = nil
        super.init()
    }

    /// One that goes with this object, unless it is handed over.
    init(_ file: TemporaryFile) {
        url = file.url
        temporaryFile = file
        super.init()
    }

    /// The file may have been complete before.
    override var mayBeEmpty: Bool { false }

    override func finish() throws -> URL {
        guard let url else {
            throw NetworkError(
                code: .invalidResponse, phase: .saving, message: "The response ended without a file.")
        }
        return url
    }
}
