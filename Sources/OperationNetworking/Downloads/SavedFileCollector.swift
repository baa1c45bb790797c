// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Gives the place of a file that was saved while it came.
final class SavedFileCollector: ResponseCollector<URL>, TemporaryFileHolder, @unchecked Sendable {
    // Sendable: as its superclass.

    let temporaryFile: TemporaryFile?
    private let url: URL?
    /// The bytes of an answer that is no file: only of such a one any come here, and not more than were kept.
    private var answer = Data()

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

    override func receive(_ bytes: UnsafeRawBufferPointer, flow: any NetworkTask) {
        answer.append(contentsOf: bytes.prefix(max(ErrorBodyCollector.patience - answer.count, 0)))
    }

    override func prefix(_ count: Int) -> Data? { answer.isEmpty ? nil : Data(answer.prefix(max(count, 0))) }

    override func finish() throws -> URL {
        guard let url else {
            throw NetworkError(
                code: .invalidResponse, phase: .saving, message: "The response ended without a file.")
        }
        return url
    }
}
