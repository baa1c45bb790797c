// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit
import ScreenModel
import Testing

@Suite("opget in a terminal", .timeLimit(.minutes(2)))
struct ScreenTests {
    private let bench: OpgetBench

    init() throws { bench = try OpgetBench() }

    @Test(arguments: [40, 80]) func `bars stay in place and within the terminal's width`(columns: Int) async throws {
        let gate = Gate()
        defer { gate.open() }
        let paths = (0..<3).map { "/a-file-with-a-rather-long-name-number-\($0).tar.gz" }
        for path in paths { bench.stall(path, count: 1 << 20, first: 500_000, until: gate) }
        let process = try bench.start(paths.map(bench.url), columns: columns)
        #expect(await process.wrote("%"))
        gate.open()
        let end = await process.end()
        #expect(end.status == 0)
        var screen = ScreenModel(columns: columns)
        screen.write(end.errors)
        #expect(screen.complaints.isEmpty, "\(screen.complaints)")
        #expect(!screen.isCursorHidden)
        #expect(screen.text.count == 4)
        #expect(screen.text.last?.hasPrefix("3 of 3 downloaded: 3.15 MB in ") == true)
        #expect(screen.text.prefix(3).allSatisfy { $0.hasPrefix("✓ a-fi") })
        #expect(screen.text.prefix(3).allSatisfy { $0.contains("1.05 MB in ") })
    }

    @Test func `after an interruption, the terminal is restored`() async throws {
        let gate = Gate()
        defer { gate.open() }
        bench.stall("/file", count: 1 << 20, first: 500_000, until: gate)
        let process = try bench.start([bench.url("/file")], columns: 80)
        #expect(await process.wrote("%"))
        process.send(SIGINT)
        let end = await process.end()
        #expect(end.status == 130)
        var screen = ScreenModel(columns: 80)
        screen.write(end.errors)
        #expect(!screen.isCursorHidden && screen.complaints.isEmpty)
        #expect(screen.text.first?.hasPrefix("Interrupted.") == true)
    }

    @Test func `a file name from a server cannot control the terminal`() async throws {
        bench.server.route("GET", "/x") { _ in
            .text("x").with("Content-Disposition", "attachment; filename*=UTF-8''a%1B%5B2Jb%E2%80%AE.txt")
        }
        let end = try await bench.run([bench.url("/x")], columns: 80)
        var screen = ScreenModel(columns: 80)
        screen.write(end.errors)
        #expect(end.status == 0 && screen.complaints.isEmpty)
        #expect(screen.text.first?.hasPrefix("✓ a[2Jb.txt") == true, "\(screen.text)")
    }

    @Test func `names with wide characters fit into the terminal`() async throws {
        let gate = Gate()
        defer { gate.open() }
        let name = "/" + String(repeating: "%E6%97%A5%E6%9C%AC%F0%9F%8E%B5", count: 12)
        bench.stall(name, count: 1 << 20, first: 500_000, until: gate)
        let process = try bench.start([bench.url(name)], columns: 40)
        #expect(await process.wrote("%"))
        gate.open()
        let end = await process.end()
        #expect(end.status == 0)
        var screen = ScreenModel(columns: 40)
        screen.write(end.errors)
        #expect(screen.complaints.isEmpty, "\(screen.complaints)")
        #expect(screen.text.first?.hasPrefix("✓ 日本") == true, "\(screen.text)")
    }

    @Test func `failure messages fit into a narrow terminal`() async throws {
        bench.server.route("GET", "/missing") { _ in .status(404) }
        bench.serve("/large", count: 4 << 20)
        let gone = try LoopbackServer()
        let url = gone.url("/").absoluteString
        await gone.stopped()
        let urls = [url, bench.url("/missing"), bench.url("/large")]
        let end = try await bench.run(["-r", "0"] + urls, columns: 40) { "ulimit -f 1000; exec \($0)" }
        var screen = ScreenModel(columns: 40)
        screen.write(end.errors)
        #expect(end.status == 3 && screen.complaints.isEmpty && !screen.isCursorHidden, "\(screen.complaints)")
        #expect(screen.text.filter { $0.hasPrefix("✗") }.count == 3, "\(screen.text)")
        let refused = try await bench.run(["ftp://host/a-rather-long-name-of-a-file"], columns: 40)
        #expect(refused.status == 2 && !refused.errors.contains("\u{1B}"))
    }
}
