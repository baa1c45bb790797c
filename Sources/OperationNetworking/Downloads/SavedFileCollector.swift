// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Gives the place of a file that was saved while it came.
final class SavedFileCollector: ResponseCollector<URL>, @unchecked Sendable {
    // Sendable: it adds only a constant.

    private let place: @Sendable () -> URL?

    init(_ place: @escaping @Sendable () -> URL?) {
        self.place = place
        super.init()
    }

    override func finish() throws -> URL {
        guard let url = place() else {
            throw NetworkError(
                code: .invalidResponse, phase: .saving, message: "The response ended without a file.")
        }
        return url
    }
}
