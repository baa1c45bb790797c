// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit
import Testing

@Suite(
    "opget on a full disk", .timeLimit(.minutes(2)),
    .enabled(if: SmallDisk.isPossible, "A disk of two megabytes cannot be mounted here: only root may do that."))
struct FullDiskTests {
    private static let size = 4 << 20
    private let bench: OpgetBench
    private let disk: SmallDisk

    init() throws {
        bench = try OpgetBench()
        disk = try #require(SmallDisk())
    }

    private var names: [String] { (try? FileManager.default.contentsOfDirectory(atPath: disk.folder.path)) ?? [] }

    private func expectFull(_ arguments: [String]) async throws {
        let end = try await bench.run(["-d", disk.folder.path, "--json"] + arguments + [bench.url("/file")])
        #expect(end.status == 6 && end.errors.contains("✗"), "\(end)")
        #expect(try LogLine.all(end.output).first { $0.event == "fail" }?.code == "diskFull", "\(end.output)")
        #expect(!names.contains("file"))
    }

    @Test(arguments: [[], ["-s", "4"]]) func `a full disk is reported at the start`(arguments: [String]) async throws {
        bench.serve("/file", count: Self.size)
        try await expectFull(arguments)
        // No file is left that would keep the disk full.
        #expect(!names.contains { $0.hasSuffix(".part") } || arguments.isEmpty, "\(names)")
    }

    @Test(arguments: [[], ["-s", "4"]])
    func `a full disk is reported during the download if the length is unknown`(arguments: [String]) async throws {
        bench.server.route("GET", "/file") { _ in
            LoopbackAnswer(
                .head(200, ["Transfer-Encoding": "chunked"]), .chunk(TestPattern.bytes(count: Self.size)), .lastChunk())
        }
        try await expectFull(arguments)
    }

    @Test(arguments: [[], ["-s", "4"]])
    func `a disk that reports no numbers is not full`(arguments: [String]) async throws {
        bench.serve("/file", count: Self.size)
        let disk = try #require(SmallDisk(size: "0"))
        let end = try await bench.run(["-d", disk.folder.path] + arguments + [bench.url("/file")])
        #expect(end.status == 0, "\(end)")
    }

    @Test func `a log that does not fit ends with a complete line`() async throws {
        bench.serve("/file", count: 1_000)
        let filler = disk.folder.appending(path: "filler")
        // Only one page is left.
        try Data(count: (2 << 20) - 4_096).write(to: filler)
        let urls = (0..<60).map { bench.url("/file?\($0)") + " out=\($0)" }.joined(separator: "\n")
        let log = disk.folder.appending(path: "log").path
        let end = try await bench.run(["--json=\(log)", "-q", "-i", "-"], input: urls)
        #expect(end.status == 6 && end.errors.contains("The log is incomplete"), "\(end)")
        let text = try String(contentsOfFile: log, encoding: .utf8)
        let lines = try LogLine.all(text)
        #expect(text.hasSuffix("}\n") && lines.count > 5)
    }
}
