// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit
import TerminalTestSupport
import Testing

@Suite("Resuming downloads with opget", .timeLimit(.minutes(2)))
struct ResumingTests {
    private static let size = 4 << 20
    private let bench: OpgetBench

    init() throws { bench = try OpgetBench() }

    private func stop(by signal: Int32, _ arguments: [String] = []) async throws -> ProgramRun.End {
        try await bench.stop(by: signal, count: Self.size, arguments)
    }

    @Test(arguments: [[], ["-s", "4"]]) func `opget resumes after an interruption`(arguments: [String]) async throws {
        let end = try await stop(by: SIGINT, arguments)
        // The process ends by the signal itself, so that a loop in a shell ends as well.
        #expect(end.status == 130 && end.isBySignal)
        #expect(end.errors.contains("--continue"))
        #expect(try LogLine.all(end.output).last?.exit == 130)
        bench.serve("/file", count: Self.size)
        bench.server.forget()
        let next = try await bench.run(arguments + ["--continue", "--json", bench.url("/file")])
        #expect(next.status == 0)
        #expect(bench.holds("file", count: Self.size))
        #expect(bench.names == ["file"])
        let resumed = try #require(try LogLine.all(next.output).first { $0.event == "done" }?.resumed)
        // Only bytes that were not written to the disk yet are downloaded twice.
        #expect(resumed >= 64 << 10)
    }

    @Test(arguments: [[], ["-s", "4"]]) func `opget resumes after it was killed`(arguments: [String]) async throws {
        let end = try await stop(by: SIGKILL, arguments)
        #expect(end.status == 128 + SIGKILL && end.isBySignal)
        bench.serve("/file", count: Self.size)
        bench.server.forget()
        let next = try await bench.run(arguments + ["--json", bench.url("/file")])
        #expect(next.status == 0)
        #expect(bench.holds("file", count: Self.size))
        let done = try #require(try LogLine.all(next.output).first { $0.event == "done" })
        #expect(done.resumed ?? 0 > 0 && done.discarded == 0)
        #expect(bench.server.requests.filter { $0.method == "GET" }.allSatisfy { $0["If-Range"] == "\"one\"" })
    }

    @Test(arguments: [[], ["-s", "4"]]) func `a changed file is downloaded again`(arguments: [String]) async throws {
        _ = try await stop(by: SIGKILL, arguments)
        bench.serve("/file", count: Self.size + 1, etag: "\"two\"")
        let next = try await bench.run(arguments + ["--json", bench.url("/file")])
        #expect(next.status == 0)
        #expect(next.errors.contains("starting from the beginning"))
        #expect(bench.holds("file", count: Self.size + 1))
        let done = try #require(try LogLine.all(next.output).first { $0.event == "done" })
        #expect(done.resumed == 0 && done.discarded ?? 0 > 0)
    }

    @Test(arguments: [[], ["-s", "4"]]) func `a lost connection is opened again`(arguments: [String]) async throws {
        let resource = LoopbackResource(.pattern(count: Self.size), etag: "\"one\"")
        bench.server.route("GET", "/file") { request in
            let answer = resource.answer(to: request)
            // The first response with bytes is cut off.
            return request.number <= 1 && request.method == "GET" ? answer.cut(at: 300_000, by: .reset) : answer
        }
        let end = try await bench.run(arguments + ["--json", bench.url("/file")])
        #expect(end.status == 0)
        #expect(bench.holds("file", count: Self.size))
        #expect(try LogLine.all(end.output).contains { $0.event == "retry" })
    }

    @Test func `a server without ranges sends the file in one piece`() async throws {
        bench.serve("/file", count: Self.size, ranges: false)
        let end = try await bench.run(["-s", "4", bench.url("/file")])
        #expect(end.status == 0)
        #expect(end.errors.contains("downloading in one stream, because the server does not support ranges"))
        #expect(bench.holds("file", count: Self.size))
        // The segments rely on this header, because a server that compresses its response would report no length.
        #expect(bench.server.requests.first { $0.method == "HEAD" }?["Accept-Encoding"] == "identity")
        bench.server.route("HEAD", "/file") { _ in .status(405) }
        #expect(try await bench.run(["-s", "4", "-f", bench.url("/file")]).status == 0)
    }

    @Test func `a server that announces ranges and sends none is detected`() async throws {
        let resource = LoopbackResource(.pattern(count: Self.size), etag: "\"one\"")
        let whole = LoopbackResource(.pattern(count: Self.size), etag: "\"one\"", acceptsRanges: false)
        bench.server.route("GET", "/file") { request in
            request.method == "HEAD" ? resource.answer(to: request) : whole.answer(to: request)
        }
        let end = try await bench.run(["-s", "4", bench.url("/file")])
        #expect(end.status == 0)
        #expect(bench.holds("file", count: Self.size))
        #expect(bench.names == ["file"])
    }

    @Test func `segments are requested in parallel`() async throws {
        bench.serve("/file", count: Self.size)
        let end = try await bench.run(["-s", "4", "--json", bench.url("/file")])
        #expect(end.status == 0)
        #expect(bench.rangeStarts.sorted() == [0, 1 << 20, 2 << 20, 3 << 20])
        #expect(bench.holds("file", count: Self.size))
        #expect(bench.names == ["file"])
    }

    @Test(arguments: [[], ["-s", "4"]]) func `a full disk is reported`(arguments: [String]) async throws {
        bench.serve("/file", count: Self.size)
        // The limit on the size of a file has the same effect as a full disk.
        let end = try await bench.run(arguments + [bench.url("/file")], shell: { "ulimit -f 1000; exec \($0)" })
        #expect(end.status == 6)
        #expect(end.errors.contains("✗"))
        #expect(!bench.names.contains("file"))
    }

    @Test func `with --fresh, the partial file is discarded`() async throws {
        _ = try await stop(by: SIGKILL)
        bench.serve("/file", count: Self.size)
        bench.server.forget()
        #expect(try await bench.run(["--fresh", bench.url("/file")]).status == 0)
        #expect(bench.server.requests.allSatisfy { $0["Range"] == nil })
        #expect(bench.names == ["file"])
    }

    @Test func `a run without segments resumes an earlier run with segments, and leaves no other files`() async throws {
        _ = try await stop(by: SIGKILL, ["-s", "4"])
        bench.serve("/file", count: Self.size)
        let end = try await bench.run(["--json", bench.url("/file")])
        #expect(end.status == 0 && bench.holds("file", count: Self.size))
        #expect(try LogLine.all(end.output).first { $0.event == "done" }?.resumed ?? 0 > 0)
        #expect(bench.names == ["file"])
        try FileManager.default.removeItem(at: bench.folder.appending(path: "file"))

        _ = try await stop(by: SIGKILL)
        bench.serve("/file", count: Self.size)
        #expect(try await bench.run(["-s", "4", bench.url("/file")]).status == 0)
        #expect(bench.names == ["file"] && bench.holds("file", count: Self.size))
        try FileManager.default.removeItem(at: bench.folder.appending(path: "file"))

        _ = try await stop(by: SIGKILL, ["-s", "4"])
        bench.serve("/file", count: Self.size)
        bench.server.forget()
        #expect(try await bench.run(["--fresh", "-s", "4", bench.url("/file")]).status == 0)
        #expect(bench.rangeStarts.sorted() == [0, 1 << 20, 2 << 20, 3 << 20])
    }

    @Test func `metadata that a killed program left beside a complete file is removed`() async throws {
        _ = try await stop(by: SIGKILL, ["-s", "4"])
        let part = try #require(bench.names.first { $0.hasSuffix(".part") })
        let place = bench.folder.appending(path: "file")
        try FileManager.default.moveItem(at: bench.folder.appending(path: part), to: place)
        #expect(try await bench.run(["--continue", bench.url("/file")]).status == 0)
        #expect(bench.names == ["file"])
    }
}
