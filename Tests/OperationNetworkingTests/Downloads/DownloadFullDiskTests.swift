// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if os(Linux) || os(macOS)
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.timeLimit(.minutes(3)), .serialized)
    struct DownloadFullDiskTests {
        /// A file system of 256 KiB in the folder of the bench, if this process may mount it.
        private final class SmallDisk {
            let url: URL

            init?(at url: URL) throws {
                self.url = url
                try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
                guard Self.run("mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", url.path) else { return nil }
            }

            deinit { _ = Self.run("umount", url.path) }

            private static func run(_ arguments: String...) -> Bool {
                let process = Process()
                process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
                process.arguments = arguments
                process.standardError = FileHandle.nullDevice
                guard (try? process.run()) != nil else { return false }
                process.waitUntilExit()
                return process.terminationStatus == 0
            }
        }

        @Test(arguments: [true, false])
        func `a file that does not fit is a typed error, and nothing is left`(isLengthKnown: Bool) async throws {
            let bench = try DownloadBench(try #require(SessionKind.allCases.first))
            let url = bench.url("disk")
            let disk = try await TestThread.run { Unshared(try SmallDisk(at: url)) }
            guard disk.value != nil else {
                return print("SKIPPED: this process may not mount a file system, so no disk was filled for real.")
            }
            let bytes = TestPattern.bytes(count: 400_000)
            bench.server.route("GET", "/file") { _ in
                isLengthKnown
                    ? .bytes(bytes, fields: [LoopbackField("ETag", "\"one\"")])
                    : LoopbackAnswer(
                        .head(200, ["Transfer-Encoding": "chunked", "ETag": "\"one\""]), .chunk(bytes), .lastChunk())
            }
            let conclusion = try await bench.download(to: .file(bench.url("disk/sub/file")))
            #expect(conclusion.error?.code == .diskFull)
            #expect(bench.names("disk") == [])
            // The space is available again.
            bench.serve(LoopbackResource(.bytes(Array(bytes[..<200_000])), etag: "\"one\""))
            #expect(try await bench.download(to: .file(bench.url("disk/sub/file"))).file?.length == 200_000)
            #expect(bench.names("disk/sub") == ["file"])
            try await TestThread.run { disk.value = nil }
        }

        private final class Unshared: @unchecked Sendable {
            // Sendable: only one thread at a time uses the value.
            var value: SmallDisk?
            init(_ value: SmallDisk?) { self.value = value }
        }
    }
#endif
