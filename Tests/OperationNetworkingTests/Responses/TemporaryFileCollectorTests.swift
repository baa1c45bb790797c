// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if os(Linux)
    import Foundation
    import OperationNetworking
    import Testing

    @Suite("Bodies in temporary files", .timeLimit(.minutes(3)))
    struct TemporaryFileCollectorTests {
        private final class Task: IdleTask {
        }

        @Test(arguments: [
            ("/dev/full", O_WRONLY, NetworkError.Code.diskFull, ENOSPC),
            ("/dev/null", O_RDONLY, .fileUnwritable, EBADF),
        ])
        func `a full disk is reported as a full disk, and any write error is reported with its number`(
            device: String, mode: Int32, code: NetworkError.Code, number: Int32
        ) throws {
            let collector = TemporaryFileCollector(writingTo: open(device, mode), at: URL(fileURLWithPath: device))
            try Data(count: 1_000).withUnsafeBytes { try collector.receive($0, flow: Task()) }
            #expect { try collector.finish() } throws: { error in
                let error = error as? NetworkError
                return error?.code == code && error?.underlying?.number == Int(number)
            }
        }
    }
#endif
