// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import Testing

@Suite(.timeLimit(.minutes(3)))
struct DownloadPermissionsTests {
    /// Returns the permissions of a new file after the `umask` was applied.
    private func made(_ permissions: Int, _ bench: DownloadBench) throws -> Int {
        let file = open(bench.url("made").path, O_WRONLY | O_CREAT | O_EXCL, mode_t(permissions))
        #expect(file >= 0)
        close(file)
        let result = try #require(bench.permissions("made"))
        try FileManager.default.removeItem(at: bench.url("made"))
        return result
    }

    @Test(arguments: [0o644, 0o600, 0o444, 0o400, 0o777, 0o200])
    func `a partial file is accessible only to its owner, and the complete file gets the requested permissions`(
        permissions: Int
    ) async throws {
        let bench = try DownloadBench()
        let options = with(DownloadOptions()) { $0.permissions = UInt16(permissions) }
        try await bench.leavePart(options: options)
        for url in [bench.partURL, bench.metadataURL] {
            #expect(bench.permissions(try #require(url).lastPathComponent) == 0o600)
        }
        let conclusion = try await bench.download(to: .file(bench.url("file")), options: options)
        #expect((conclusion.file?.resumedBytes ?? 0) > 300_000, "\(conclusion)")
        #expect(bench.permissions("file") == (try made(permissions, bench)))
        #expect(bench.names() == ["file"])
    }

    @Test func `a resumed file gets the permissions of the current download`() async throws {
        let bench = try DownloadBench()
        var options = DownloadOptions()
        options.permissions = 0o600
        try await bench.leavePart(options: options)
        // An older version created partial files with the permissions of the final file.
        #expect(chmod(try #require(bench.partURL).path, 0o644) == 0)
        options.permissions = 0o640
        let conclusion = try await bench.download(to: .file(bench.url("file")), options: options)
        #expect((conclusion.file?.resumedBytes ?? 0) > 300_000, "\(conclusion)")
        #expect(bench.permissions("file") == (try made(0o640, bench)))
    }

    @Test func `a partial file that cannot be opened is replaced by a new one`() async throws {
        let bench = try DownloadBench()
        try await bench.leavePart()
        let isFirst = Locked(true)
        let files = FileSystem { call in
            guard call.kind == .open, call.name?.description.hasSuffix(".part") == true else { return .proceed }
            return isFirst.withLock { exchange(&$0, with: false) } ? .fail(EACCES) : .proceed
        }
        let conclusion = try await bench.download(to: .file(bench.url("file")), files: files)
        #expect(conclusion.file?.resumedBytes == 0, "\(conclusion)")
        #expect(bench.holds("file"))
        #expect(bench.names() == ["file"])
    }
}
