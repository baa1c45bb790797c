// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A file for one test, which is deleted when the process ends.
struct TemporaryFile {
    let url: URL

    private static let written = Locked<[URL]>([])
    private static let removal: Int32 = atexit {
        for url in TemporaryFile.written.withLock({ $0 }) { try? FileManager.default.removeItem(at: url) }
    }

    init(_ data: Data) throws {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("conformance-\(UUID().uuidString)")
        try data.write(to: url)
        self.url = url
        Self.written.withLock { $0.append(url) }
        _ = Self.removal
    }
}
