// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if os(Linux)
    import Foundation
    import OperationNetworking
    import Testing

    @Suite("Bodies in temporary files", .timeLimit(.minutes(3)))
    struct TemporaryFileCollectorTests {
        private final class Task: IdleTask {
        }

        @Test func `a full disk is reported as a full disk`() throws {
            let collector = TemporaryFileCollector(
                writingTo: open("/dev/full", O_WRONLY), at: URL(fileURLWithPath: "/dev/full"))
            try Data(count: 1_000).withUnsafeBytes { try collector.receive($0, flow: Task()) }
            #expect { try collector.finish() } throws: { error in
                let error = error as? NetworkError
                return error?.code == .diskFull && error?.underlying?.number == Int(ENOSPC)
            }
        }

        @Test func `any other write error is reported with its number`() throws {
            let collector = TemporaryFileCollector(
                writingTo: open("/dev/null", O_RDONLY), at: URL(fileURLWithPath: "/dev/null"))
            try Data(count: 1_000).withUnsafeBytes { try collector.receive($0, flow: Task()) }
            #expect { try collector.finish() } throws: { error in
                let error = error as? NetworkError
                return error?.code == .fileUnwritable && error?.underlying?.number == Int(EBADF)
            }
        }
    }
#endif
