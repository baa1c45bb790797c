// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A temporary file that is removed when nobody has it any more.
package final class SpooledFile: Sendable {
    package let url: URL

    init(_ url: URL) { self.url = url }

    deinit { unlink(url.path) }

    /// Moves a file away that the system is about to remove, into a folder of temporary files.
    package static func taking(
        _ location: URL, into folder: URL = FileManager.default.temporaryDirectory
    ) -> Result<SpooledFile, NetworkError> {
        // Of what was moved in part nothing stays.
        let file = SpooledFile(folder.appendingPathComponent("body-\(UUID().uuidString)"))
        do {
            try FileManager.default.moveItem(at: location, to: file.url)
            return .success(file)
        } catch {
            return .failure(unkept(error as NSError))
        }
    }

    private static func unkept(_ error: NSError) -> NetworkError {
        let beneath = error.userInfo[NSUnderlyingErrorKey] as? NSError
        let isFull =
            error.domain == NSCocoaErrorDomain && error.code == CocoaError.fileWriteOutOfSpace.rawValue
            || beneath?.domain == NSPOSIXErrorDomain && beneath?.code == Int(ENOSPC)
        let words = beneath.map { "\($0.domain) \($0.code)" } ?? ""
        return NetworkError(
            code: isFull ? .diskFull : .fileUnwritable, phase: .saving,
            message: isFull
                ? "The system received the response, but there is no room on the disk to keep it. Free some."
                : "The system received the response, but its file could not be kept. Check the temporary folder.",
            underlying: .init(domain: error.domain, number: error.code, text: words))
    }
}
