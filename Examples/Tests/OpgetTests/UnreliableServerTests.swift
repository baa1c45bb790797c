// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit
import Testing

@Suite("opget with unreliable servers", .timeLimit(.minutes(2)))
struct UnreliableServerTests {
    private static let size = 4 << 20
    private let bench: OpgetBench

    init() throws { bench = try OpgetBench() }

    /// The requested range.
    private static func range(_ request: LoopbackRequest) -> Range<Int>? {
        let ends = request["Range"]?.dropFirst(6).split(separator: "-").compactMap { Int($0) } ?? []
        return ends.count == 2 && ends[0] <= ends[1] ? ends[0]..<ends[1] + 1 : nil
    }

    private static func part(_ range: Range<Int>, _ fields: KeyValuePairs<String, String>) -> LoopbackStep {
        var all = [
            LoopbackField("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(size)"),
            LoopbackField("ETag", "\"one\""),
        ]
        all += fields.map { LoopbackField($0, $1) }
        return .head(LoopbackHead(206, all))
    }

    @Test(arguments: [true, false]) func `a segment with missing bytes is an error`(isChunked: Bool) async throws {
        bench.serve("/file", count: Self.size) { request, right in
            guard let range = Self.range(request) else { return right }
            let bytes = TestPattern.bytes(from: range.lowerBound, count: 1_000)
            return isChunked
                ? LoopbackAnswer(Self.part(range, ["Transfer-Encoding": "chunked"]), .chunk(bytes), .lastChunk())
                : LoopbackAnswer(Self.part(range, ["Content-Length": "1000"]), .send(bytes))
        }
        let end = try await bench.run(["-s", "4", "-r", "1", bench.url("/file")])
        #expect(end.status == 3 && end.errors.contains("fewer bytes of the file than it announced"), "\(end)")
        #expect(!bench.names.contains("file"))
        // The received bytes are kept.
        bench.serve("/file", count: Self.size)
        #expect(try await bench.run(["-s", "4", bench.url("/file")]).status == 0)
        #expect(bench.holds("file", count: Self.size))
    }

    @Test func `a server that sends less than requested is asked for the rest`() async throws {
        bench.serve("/file", count: Self.size) { request, right in
            guard let range = Self.range(request) else { return right }
            let count = min(range.count, 300_000)
            let sent = range.lowerBound..<range.lowerBound + count
            return LoopbackAnswer(
                Self.part(sent, ["Content-Length": "\(count)"]),
                .send(TestPattern.bytes(from: sent.lowerBound, count: count)))
        }
        let end = try await bench.run(["-s", "4", "-r", "2", bench.url("/file")])
        #expect(end.status == 0 && bench.holds("file", count: Self.size), "\(end)")
    }

    @Test(arguments: [[], ["-s", "2"]])
    func `a download that makes progress gets its full number of attempts again`(arguments: [String]) async throws {
        let size = 2 << 20
        bench.serve("/file", count: size) { _, right in right.cut(at: 250_000, by: .close) }
        let end = try await bench.run(arguments + ["-r", "1", "--json", bench.url("/file")])
        #expect(end.status == 0 && bench.holds("file", count: size), "\(end)")
        // No bytes existed before this run, even if it resumed from its own bytes several times.
        let lines = try LogLine.all(end.output)
        let done = try #require(lines.first { $0.event == "done" })
        #expect(done.resumed == 0 && done.discarded == 0 && lines.last?.bytes == Int64(size))
        #expect(!lines.contains { $0.event == "resume" || $0.event == "restart" })
    }

    @Test func `a download without progress is given up`() async throws {
        bench.serve("/file", count: Self.size) { _, right in right.cut(at: 10_000, by: .close) }
        let end = try await bench.run(["-s", "4", "-r", "1", bench.url("/file")])
        #expect(end.status == 3 && end.errors.contains("opget tried 2 times"), "\(end)")
    }

    @Test func `a complete response instead of a segment discards nothing`() async throws {
        _ = try await bench.stop(by: SIGKILL, count: Self.size, ["-s", "4"])
        let whole = LoopbackResource(.pattern(count: Self.size), etag: "\"one\"", acceptsRanges: false)
        let answers = AnswerCount()
        bench.serve("/file", count: Self.size) { request, right in
            answers.next() == 0 ? whole.answer(to: request) : right
        }
        let end = try await bench.run(["-s", "4", "--json", bench.url("/file")])
        #expect(end.status == 0 && bench.holds("file", count: Self.size), "\(end)")
        let lines = try LogLine.all(end.output)
        #expect(!lines.contains { $0.event == "restart" })
        let done = try #require(lines.first { $0.event == "done" })
        #expect(done.resumed ?? 0 > 0 && done.discarded == 0)
    }

    @Test(arguments: ["\"one\"", nil] as [String?])
    func `received bytes are kept if the server sends a different file`(etag: String?) async throws {
        _ = try await bench.stop(by: SIGKILL, count: Self.size, ["-s", "4"])
        let other = LoopbackResource(.pattern(count: 5_000), etag: etag, acceptsRanges: false)
        bench.serve("/file", count: Self.size) { request, _ in other.answer(to: request) }
        let end = try await bench.run(["-s", "4", "-r", "0", bench.url("/file")])
        #expect(end.status == 4, "\(end)")
        bench.serve("/file", count: Self.size)
        let next = try await bench.run(["-s", "4", "--json", bench.url("/file")])
        #expect(next.status == 0 && bench.holds("file", count: Self.size))
        let done = try #require(try LogLine.all(next.output).first { $0.event == "done" })
        #expect(done.resumed ?? 0 > 0 && done.discarded == 0)
    }

    @Test func `a file that changes during the download is downloaded again`() async throws {
        let (old, new) = ("\"one\"", LoopbackResource(.pattern(count: Self.size + 5), etag: "\"two\""))
        let resource = LoopbackResource(.pattern(count: Self.size), etag: old)
        let answers = AnswerCount()
        bench.server.route("GET", "/file") { request in
            if answers.isPast(2) { return new.answer(to: request) }
            guard request.method == "GET" else { return resource.answer(to: request) }
            return answers.next() < 2 ? resource.answer(to: request) : new.answer(to: request)
        }
        let end = try await bench.run(["-s", "4", "--json", bench.url("/file")])
        #expect(end.status == 0 && bench.holds("file", count: Self.size + 5), "\(end)")
    }

    @Test func `a connection that closes after the last byte is a success`() async throws {
        bench.serve("/file", count: Self.size) { request, right in
            guard let range = Self.range(request) else { return right }
            return LoopbackAnswer(
                Self.part(range, ["Transfer-Encoding": "chunked"]),
                .chunk(TestPattern.bytes(from: range.lowerBound, count: range.count)), .close)
        }
        for retries in ["0", "2"] {
            let end = try await bench.run(["-s", "4", "-f", "-r", retries, bench.url("/file")])
            #expect(end.status == 0 && bench.holds("file", count: Self.size), "\(end)")
        }
        let ranges = bench.server.requests.filter { $0.method == "GET" }
        #expect(ranges.allSatisfy { Self.range($0) != nil })
    }

    @Test func `segments use the target of a redirect, and the original URL once that has expired`() async throws {
        let gone = AnswerCount()
        bench.server.route("GET", "/go") { _ in .redirect(to: gone.next() == 0 ? "/old" : "/new") }
        let resource = LoopbackResource(.pattern(count: Self.size), etag: "\"one\"")
        bench.server.route("GET", "/new") { resource.answer(to: $0) }
        bench.server.route("GET", "/old") { $0.method == "HEAD" ? resource.answer(to: $0) : .status(403) }
        let end = try await bench.run(["-s", "4", "-o", "file", bench.url("/go")])
        #expect(end.status == 0 && bench.holds("file", count: Self.size), "\(end)")
        #expect(bench.server.requests.filter { $0.path == "/go" }.map(\.method) == ["HEAD", "HEAD"])
        #expect(bench.server.requests.filter { $0.path == "/new" && $0.method == "GET" }.count == 4)
    }

    @Test func `secrets are not sent to another server after a redirect`() async throws {
        let other = try LoopbackServer()
        let resource = LoopbackResource(.pattern(count: Self.size), etag: "\"one\"")
        other.route("GET", "/file") { resource.answer(to: $0) }
        let target = other.url("/file").absoluteString
        bench.server.route("GET", "/go") { _ in .redirect(to: target) }
        let fields = [
            "-H", "Authorization: Bearer x", "-H", "X-Api-Key: y", "-H", "X-Login: Bearer v", "-H", "X-Plain: z",
        ]
        let end = try await bench.run(fields + ["-s", "4", "-o", "file", bench.url("/go")])
        #expect(end.status == 0 && bench.holds("file", count: Self.size), "\(end)")
        #expect(bench.server.requests.allSatisfy { $0["Authorization"] == "Bearer x" })
        #expect(other.requests.count == 5)
        #expect(
            other.requests.allSatisfy { $0["Authorization"] == nil && $0["X-Api-Key"] == nil && $0["X-Login"] == nil })
        #expect(other.requests.allSatisfy { $0["X-Plain"] == "z" })
    }

    @Test(arguments: ["/file", "/go", "/far"])
    func `credentials in the URL are sent with all segments, but to no other server`(path: String) async throws {
        let resource = LoopbackResource(.pattern(count: Self.size), etag: "\"one\"")
        let other = try LoopbackServer()
        other.route("GET", "/file") { resource.answer(to: $0) }
        let target = other.url("/file").absoluteString
        let wanted = "Basic " + Data("user:secret".utf8).base64EncodedString()
        func guarded(_ path: String, _ answer: @escaping @Sendable (LoopbackRequest) -> LoopbackAnswer) {
            bench.server.route("GET", path) { $0["Authorization"] == wanted ? answer($0) : .status(401) }
        }
        guarded("/file") { resource.answer(to: $0) }
        guarded("/go") { _ in .redirect(to: "/file") }
        guarded("/far") { _ in .redirect(to: target) }
        let url = bench.url(path).replacing("http://", with: "http://user:secret@")
        let end = try await bench.run(["-s", "4", "-o", "file", url + "#fragment"])
        #expect(end.status == 0 && bench.holds("file", count: Self.size), "\(end)")
        #expect(bench.server.requests.allSatisfy { $0["Authorization"] == wanted })
        #expect(other.requests.allSatisfy { $0["Authorization"] == nil })
    }

    @Test func `if HEAD fails, the file is requested in one piece, unless segments exist`() async throws {
        let resource = LoopbackResource(.pattern(count: Self.size), etag: "\"one\"")
        func stumble() {
            bench.server.route("GET", "/file") { $0.method == "HEAD" ? .status(503) : resource.answer(to: $0) }
        }
        stumble()
        #expect(try await bench.run(["-s", "4", "-r", "0", bench.url("/file")]).status == 0)
        #expect(bench.holds("file", count: Self.size))
        try FileManager.default.removeItem(at: bench.folder.appending(path: "file"))

        _ = try await bench.stop(by: SIGKILL, count: Self.size, ["-s", "4"])
        stumble()
        let end = try await bench.run(["-s", "4", "-r", "0", bench.url("/file")])
        #expect(end.status == 4 && end.errors.contains("503"), "\(end)")
        #expect(bench.names.contains { $0.hasSuffix(".part") } && !bench.names.contains("file"))
    }

    @Test func `a wrong checksum of a segmented download is an error`() async throws {
        bench.serve("/file", count: Self.size)
        let end = try await bench.run(["-s", "4", "--checksum=crc32=00000000", bench.url("/file")])
        #expect(end.status == 5 && bench.names.isEmpty, "\(end)")
    }
}
