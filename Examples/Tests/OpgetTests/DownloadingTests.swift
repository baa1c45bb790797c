// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit
import Testing

@Suite("opget downloads", .timeLimit(.minutes(2)))
struct DownloadingTests {
    private let bench: OpgetBench

    init() throws { bench = try OpgetBench() }

    @Test func `a file comes, and a line says so`() async throws {
        bench.serve("/file.bin", count: 300_000)
        let end = try await bench.run([bench.url("/file.bin")])
        #expect(end.status == 0)
        #expect(end.errors.hasPrefix("✓ file.bin  300 kB in "))
        #expect(end.output.isEmpty && !end.errors.contains("\u{1B}"))
        #expect(bench.holds("file.bin", count: 300_000))
        #expect(bench.names == ["file.bin"])
    }

    @Test func `a list has comments, names and checksums`() async throws {
        for name in ["a", "b", "c"] { bench.serve("/\(name)", count: 10_000) }
        bench.server.route("GET", "/sum") { _ in .text("123456789") }
        let list = """
            # a comment

            \(bench.url("/a"))
            \(bench.url("/b")) out=below/renamed
              \(bench.url("/sum")) crc32=cbf43926
            """
        let end = try await bench.run(["-i", "-", bench.url("/c"), "--json"], input: list)
        #expect(end.status == 0)
        #expect(end.errors.contains("4 of 4 downloaded"))
        #expect(bench.names == ["a", "below", "c", "sum"])
        #expect(bench.holds("below/renamed", count: 10_000))
        let lines = try LogLine.all(end.output)
        #expect(lines.filter { $0.event == "done" }.count == 4)
        #expect(lines.last?.event == "end" && lines.last?.exit == 0)
    }

    @Test func `the name that a server gives stays in the directory`() async throws {
        bench.server.route("GET", "/get") { _ in
            .text("x").with("Content-Disposition", "attachment; filename=\"../../evil\"")
        }
        #expect(try await bench.run([bench.url("/get")]).status == 0)
        #expect(bench.names == ["evil"])
        #expect(try await bench.run(["-O", bench.url("/get")]).status == 0)
        #expect(bench.names == ["evil", "get"])
    }

    @Test func `what is there already is refused, left alone, or replaced`() async throws {
        bench.serve("/file", count: 1_000)
        _ = try bench.write("old", to: "file")
        let refused = try await bench.run([bench.url("/file")])
        #expect(refused.status == 6 && refused.errors.contains("--continue"))
        let count = bench.server.counts.requests
        let skipped = try await bench.run(["--continue", bench.url("/file")])
        #expect(skipped.status == 0 && skipped.errors.contains("there already"))
        #expect(bench.server.counts.requests == count)
        #expect(try await bench.run(["--overwrite", bench.url("/file")]).status == 0)
        #expect(bench.holds("file", count: 1_000))
    }

    @Test func `a checksum that is wrong is found out`() async throws {
        bench.server.route("GET", "/sum") { _ in .text("123456789") }
        let wrong = try await bench.run(["--checksum=crc32=00000000", bench.url("/sum")])
        #expect(wrong.status == 5 && wrong.errors.contains("crc32"))
        #expect(bench.names.isEmpty)
        #expect(try await bench.run(["--checksum=crc32=CBF43926", bench.url("/sum")]).status == 0)
    }

    @Test func `failures have sentences and numbers, and the first URL's counts`() async throws {
        bench.server.route("GET", "/missing") { _ in .status(404) }
        bench.server.route("GET", "/sum") { _ in .text("x") }
        let gone = try LoopbackServer()
        let url = gone.url("/").absoluteString
        await gone.stopped()
        let list = "\(url)\n\(bench.url("/missing"))\n\(bench.url("/sum")) md5=00000000000000000000000000000000\n"
        let path = try bench.write(list, to: "list")
        let end = try await bench.run(["--retries=0", "-i", path])
        #expect(end.status == 3)
        #expect(end.errors.contains("0 of 3 downloaded, 3 failed"))
        #expect(end.errors.contains("404") && end.errors.contains("md5"))
        #expect(try await bench.run(["-q", bench.url("/missing"), bench.url("/sum"), "--retries=0"]).status == 4)
    }

    @Test(arguments: [["nonsense"], ["http://"], ["ftp://host/file"], ["--segmets=2", "http://h/"], []])
    func `what is wrong on the command line is said before anything begins`(arguments: [String]) async throws {
        let end = try await bench.run(arguments)
        #expect(end.status == 2)
        #expect(end.errors.contains("Nothing was downloaded"))
        #expect(!end.errors.contains("\u{1B}"))
    }

    @Test func `quiet says nothing but failures`() async throws {
        bench.serve("/file", count: 1_000)
        let end = try await bench.run(["-q", bench.url("/file")])
        #expect(end.status == 0 && end.errors.isEmpty && end.output.isEmpty)
        let help = try await bench.run(["--help"])
        #expect(help.status == 0 && help.output.contains("--limit-rate") && help.errors.isEmpty)
        #expect(help.output.split(separator: "\n").allSatisfy { $0.count <= 110 })
    }

    @Test func `no more connections to a host than may be`() async throws {
        let urls = (0..<12).map { "/file\($0)" }
        for url in urls { bench.serve(url, count: 50_000) }
        let end = try await bench.run(["-j", "12", "--per-host", "2"] + urls.map(bench.url))
        #expect(end.status == 0)
        #expect(bench.server.counts.connections <= 2)
        #expect(bench.server.counts.requests == 12)
    }

    @Test func `a rate is kept`() async throws {
        bench.serve("/file", count: 1_000_000)
        let start = ContinuousClock.now
        let end = try await bench.run(["--limit-rate=1M", "-s", "2", bench.url("/file")])
        #expect(end.status == 0)
        // All but what may come at once takes its time; how much longer it takes is the machine's affair.
        #expect(ContinuousClock.now - start >= .milliseconds(800))
        #expect(bench.holds("file", count: 1_000_000))
    }
}
