// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit
import ScreenModel
import Testing

@Suite("opget in a terminal", .timeLimit(.minutes(2)))
struct ScreenTests {
    private let bench: OpgetBench

    init() throws { bench = try OpgetBench() }

    @Test(arguments: [40, 80]) func `bars are drawn in their place, and never wider than the terminal`(columns: Int)
        async throws
    {
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

    @Test func `interrupted, it leaves the terminal as it was`() async throws {
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

    @Test func `a name from a server cannot steer the terminal`() async throws {
        bench.server.route("GET", "/x") { _ in
            .text("x").with("Content-Disposition", "attachment; filename=\"a\u{1B}[2Jb\"")
        }
        let end = try await bench.run([bench.url("/x")], columns: 80)
        var screen = ScreenModel(columns: 80)
        screen.write(end.errors)
        #expect(screen.complaints.isEmpty)
    }
}
