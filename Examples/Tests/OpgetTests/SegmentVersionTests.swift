// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit
import Testing

/// Tests that segments of two versions are never combined in one file, whatever the server sends or omits.
@Suite("Versions of files with opget", .timeLimit(.minutes(5)))
struct SegmentVersionTests {
    private static let size = 2 << 20

    /// The validators in the response to HEAD.
    enum First: CaseIterable, Sendable {
        case none, weak, strong, date, both

        func fields(of version: Int) -> [LoopbackField] {
            var fields = [LoopbackField("Date", "Sun, 06 Nov 1994 09:49:37 GMT")]
            if self == .weak { fields.append(LoopbackField("ETag", "W/\"\(version)\"")) }
            if self == .strong || self == .both { fields.append(LoopbackField("ETag", "\"\(version)\"")) }
            if self == .date || self == .both {
                fields.append(LoopbackField("Last-Modified", "Sun, 06 Nov 1994 08:49:3\(version) GMT"))
            }
            return fields
        }
    }

    /// The validator in a partial response: none, the one of the sent version, or another one.
    enum Second: CaseIterable, Sendable { case none, same, other }

    /// Serves a file that changes after its first part was sent, or that does not change.
    private func serve(
        _ bench: OpgetBench, _ first: First, _ second: Second, honorsIfRange: Bool, isChanged: Bool
    ) {
        let contents = [TestPattern.bytes(count: Self.size), TestPattern.bytes(from: 5, count: Self.size)]
        let answers = AnswerCount()
        bench.server.route("GET", "/file") { request in
            let isPast = request.method == "GET" ? answers.next() > 0 : answers.isPast(0)
            let version = isChanged && isPast ? 2 : 1
            let bytes = contents[version - 1]
            let whole = first.fields(of: version) + [LoopbackField("Accept-Ranges", "bytes")]
            let ends = request["Range"]?.dropFirst(6).split(separator: "-").compactMap { Int($0) } ?? []
            let condition = request["If-Range"]
            let isMet = condition == nil || whole.contains { $0.value == condition }
            guard request.method == "GET", let start = ends.first, isMet || !honorsIfRange else {
                return .bytes(bytes, fields: whole)
            }
            let end = ends.count > 1 ? ends[1] + 1 : bytes.count
            var fields = [LoopbackField("Content-Range", "bytes \(start)-\(end - 1)/\(bytes.count)")]
            switch second {
            case .none: break
            case .same: fields += first.fields(of: version)
            case .other: fields += first.fields(of: 3)
            }
            return .bytes(Array(bytes[start..<end]), status: 206, fields: fields)
        }
    }

    @Test(arguments: First.allCases, [Second.none, .same])
    func `the file contains only one version`(first: First, second: Second) async throws {
        for honorsIfRange in [true, false] {
            for isChanged in [true, false] {
                let bench = try OpgetBench()
                serve(bench, first, second, honorsIfRange: honorsIfRange, isChanged: isChanged)
                let end = try await bench.run(["-s", "2", bench.url("/file")])
                #expect(end.status == 0, "\(honorsIfRange) \(isChanged): \(end)")
                let data = FileManager.default.contents(atPath: bench.folder.appending(path: "file").path) ?? Data()
                let isOld = data.withUnsafeBytes { TestPattern.matches($0) }
                let isNew = data.withUnsafeBytes { TestPattern.matches($0, from: 5) }
                #expect(data.count == Self.size && (isOld || isChanged && isNew), "\(honorsIfRange) \(isChanged)")
            }
        }
    }

    @Test(arguments: [First.strong, .date, .both])
    func `segments of another version than the announced one are an error`(first: First) async throws {
        let bench = try OpgetBench()
        serve(bench, first, .other, honorsIfRange: false, isChanged: false)
        let end = try await bench.run(["-s", "2", "-r", "0", bench.url("/file")])
        #expect(end.status == 4 && end.errors.contains("changed on the server during the download"), "\(end)")
        #expect(!bench.names.contains("file"))
    }

    @Test func `segments without a version do not discard the partial file`() async throws {
        let bench = try OpgetBench(), size = 4 << 20
        _ = try await bench.stop(by: SIGKILL, count: size, ["-s", "4"])
        bench.serve("/file", count: size) { request, right in
            let ends = request["Range"]?.dropFirst(6).split(separator: "-").compactMap { Int($0) } ?? []
            guard ends.count == 2 else { return right }
            let place = "bytes \(ends[0])-\(ends[1])/\(size)"
            return .bytes(
                TestPattern.bytes(from: ends[0], count: ends[1] + 1 - ends[0]), status: 206,
                fields: [LoopbackField("Content-Range", place)])
        }
        let end = try await bench.run(["-s", "4", "-r", "0", bench.url("/file")])
        #expect(end.status == 4 && end.errors.contains("a part of the file without its version"), "\(end)")
        bench.serve("/file", count: size)
        let next = try await bench.run(["-s", "4", "--json", bench.url("/file")])
        #expect(next.status == 0 && bench.holds("file", count: size))
        let done = try #require(try LogLine.all(next.output).first { $0.event == "done" })
        #expect(done.resumed ?? 0 > 0 && done.discarded == 0)
    }

    @Test(arguments: ["9223372036854775807", "9223372036854775806", "9223372036854770000", "4611686018427387904"])
    func `an impossible length ends the download, but not the process`(length: String) async throws {
        let bench = try OpgetBench()
        bench.server.route("GET", "/file") { _ in
            LoopbackAnswer(.head(200, ["Content-Length": length, "Accept-Ranges": "bytes", "ETag": "\"x\""]), .close)
        }
        bench.serve("/other", count: 1_000)
        for segments in ["1", "2", "16"] {
            let end = try await bench.run(["-f", "-s", segments, "-r", "0", bench.url("/file"), bench.url("/other")])
            #expect((1...6).contains(end.status), "\(segments): \(end)")
            // Other downloads are not affected.
            #expect(bench.holds("other", count: 1_000) && !bench.names.contains("file"), "\(segments)")
        }
    }
}
