// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import Testing

@Suite(.timeLimit(.minutes(3)))
struct FileOperationErrorTests {
    private let error = FileOperationError(
        code: .noSpace, action: .copying, path: "/to/file", otherPath: "/from/file", systemErrorNumber: ENOSPC)

    @Test func `the message contains the action, the path, the reason and a suggestion`() {
        #expect(
            error.message
                == "Copying failed at /to/file (the other path is /from/file): no space is left on the volume. "
                + "Free some space and try again.")
        #expect(error.description == "[noSpace] \(error.message)")
        #expect((error as NSError).localizedDescription == error.message)
        let read = FileOperationError(code: .notFound, action: .reading, path: "/file", systemErrorNumber: ENOENT)
        #expect(read.message == "Reading /file failed: there is no such file or directory. Check the path.")
    }

    @Test func `the message of a generic system error contains its number and text`() {
        let error = FileOperationError(code: .ioFailed, action: .writing, path: "/file", systemErrorNumber: EIO)
        #expect(error.message.contains("5"))
        #expect(error.message.lowercased().contains("input/output error"))
        let own = FileOperationError(code: .ioFailed, action: .init("Guessing"), path: "/file")
        #expect(own.message == "Guessing /file failed: ioFailed.")
    }
}
