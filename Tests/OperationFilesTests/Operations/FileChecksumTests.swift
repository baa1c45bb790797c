// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationFiles
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct FileChecksumTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test(arguments: [ChecksumAlgorithm.sha256, .sha1, .md5, .crc32], [0, 262_143, 262_144, 262_145, 700_000])
    func `the checksum of a file is that of its bytes`(algorithm: ChecksumAlgorithm, size: Int) throws {
        let url = try folder.write(bytes: size, to: "file")
        let sum = try FileChecksumOperation(url, algorithm: algorithm).success()
        #expect(sum.algorithm == algorithm)
        var stream = algorithm.makeStream()
        Data.patterned(size).withUnsafeBytes { stream.update($0) }
        #expect(sum.bytes == stream.finish())
    }

    @Test func `a checksum equals a value that is parsed from hexadecimal text`() throws {
        let text = "BA7816BF8F01CFEA414140DE5DAE2223b00361a396177a9cb410ff61f20015ad"
        let expected = FileChecksum(algorithm: .sha256, hexadecimal: text)
        let sum = try FileChecksumOperation(folder.write("abc", to: "file")).success()
        #expect(sum == expected)
        #expect("\(sum)" == text.lowercased())
        #expect(sum != FileChecksum(algorithm: .crc32, bytes: sum.bytes))
    }

    @Test(arguments: ["", "zz", "352441c", "352441c22", "352441cg", "３５２４４１ｃ２", "+52441c2", "352441c2 "])
    func `invalid hexadecimal text gives no checksum`(text: String) {
        #expect(FileChecksum(algorithm: .crc32, hexadecimal: text) == nil)
        #expect(FileChecksum(algorithm: .crc32, hexadecimal: "352441c2")?.bytes == [0x35, 0x24, 0x41, 0xC2])
    }

    @Test func `a checksum of a missing file, a directory or a pipe fails`() throws {
        FileChecksumOperation(folder["missing"]).expectFailure(.notFound, .checksumming, at: folder["missing"])
        #expect(FileChecksumOperation(folder.url).failure()?.code == .isDirectory)
        #expect(mkfifo(folder["pipe"].path, 0o600) == 0)
        #expect(FileChecksumOperation(folder["pipe"]).failure()?.code == .unsupportedKind)
    }

    @Test func `a checksum of an endless file ends when it is canceled`() async throws {
        let sum = FileChecksumOperation(URL(fileURLWithPath: "/dev/zero"))
        let reads = EventRecorder<Int>()
        sum.files = FileSystem { call in
            if call.kind == .read { reads.record(1) }
            return .proceed
        }
        async let end: Void = TestThread.run { sum.start() }
        _ = await reads.events(atLeast: 5)
        sum.cancel()
        try await end
        #expect(sum.isFinished)
    }
}
