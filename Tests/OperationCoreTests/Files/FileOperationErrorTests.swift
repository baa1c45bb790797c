// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct FileOperationErrorTests {
    private let error = FileOperationError(
        code: .noSpace, action: .copying, path: "/to/file", otherPath: "/from/file", systemErrorNumber: ENOSPC)

    @Test func `it says what failed, where, why, and what to do`() {
        #expect(
            error.message
                == "Copying failed at /to/file (the other path is /from/file): no space is left on the volume. "
                + "Free some space and try again.")
        #expect(error.description == "[noSpace] \(error.message)")
        #expect(error.errorDescription == error.message)
        let read = FileOperationError(code: .notFound, action: .reading, path: "/file", systemErrorNumber: ENOENT)
        #expect(read.message == "Reading /file failed: there is no such file or directory. Check the path.")
    }

    @Test func `what only the system knows is said with its number and words`() {
        let error = FileOperationError(code: .ioFailed, action: .writing, path: "/file", systemErrorNumber: EIO)
        #expect(error.message.contains("5"))
        #expect(error.message.lowercased().contains("input/output error"))
        let own = FileOperationError(code: .init("mine"), action: .init("Guessing"), path: "/file")
        #expect(own.message == "Guessing /file failed: mine.")
    }

    @Test func `as an NSError it has the path and the system's error`() {
        let bridged = error as NSError
        #expect(bridged.domain == "OperationKit.FileOperationError")
        #expect(bridged.code == Int(ENOSPC))
        #expect(bridged.userInfo[NSFilePathErrorKey] as? String == "/to/file")
        #expect(bridged.localizedDescription == error.message)
        let underlying = bridged.userInfo[NSUnderlyingErrorKey] as? NSError
        #expect(underlying?.domain == NSPOSIXErrorDomain && underlying?.code == Int(ENOSPC))
    }

    @Test func `kinds are compared by their names`() {
        #expect(FileOperationError.Code("notFound") == .notFound)
        #expect(FileOperationError.Code("notFound").hashValue == FileOperationError.Code.notFound.hashValue)
        #expect(FileOperationError.Code.notFound != .isDirectory)
    }
}
