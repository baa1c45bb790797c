// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit
import TerminalTestSupport
import Testing

@testable import opget

/// A server, a folder, and runs of the program.
final class OpgetBench: Sendable {
    let server: LoopbackServer
    let folder: URL

    init() throws {
        server = try LoopbackServer()
        folder = FileManager.default.temporaryDirectory.appending(path: "opget-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    func start(
        _ arguments: [String], columns: Int? = nil, shell: ((String) -> String)? = nil, input: String? = nil
    ) throws -> ProgramRun {
        try ProgramRun(
            "opget", ["-d", folder.path] + arguments, in: .streams(columns: columns), input: input, shell: shell)
    }

    func run(
        _ arguments: [String], columns: Int? = nil, shell: ((String) -> String)? = nil, input: String? = nil
    ) async throws -> ProgramRun.End {
        try await start(arguments, columns: columns, shell: shell, input: input).end()
    }

    func url(_ target: String) -> String { server.url(target).absoluteString }

    /// Makes the server send a file of the pattern.
    @discardableResult
    func serve(_ path: String, count: Int, etag: String? = "\"one\"", ranges: Bool = true) -> LoopbackResource {
        let resource = LoopbackResource(.pattern(count: count), etag: etag, acceptsRanges: ranges)
        server.route("GET", path) { resource.answer(to: $0) }
        return resource
    }

    /// Makes the server send the first bytes of each response, and nothing more until the gate opens.
    func stall(_ path: String, count: Int, first: Int, until gate: Gate, etag: String = "\"one\"") {
        server.route("GET", path) { request in
            let whole = LoopbackResource(.pattern(count: count), etag: etag).answer(to: request)
            guard request.method == "GET", let head = whole.steps.first else { return whole }
            let start = request["Range"].flatMap { Int($0.dropFirst(6).prefix { $0 != "-" }) } ?? 0
            let length =
                (request["Range"].flatMap { Int($0.split(separator: "-").last ?? "") } ?? count - 1) + 1 - start
            let sent = min(first, length)
            return LoopbackAnswer(
                head, .send(TestPattern.bytes(from: start, count: sent)), .stall(until: gate),
                .send(TestPattern.bytes(from: start + sent, count: length - sent)))
        }
    }

    /// Makes the server send a file of the pattern, changed by `answer`.
    ///
    /// The response to HEAD is never changed.
    func serve(
        _ path: String, count: Int, etag: String = "\"one\"",
        _ answer: @escaping @Sendable (LoopbackRequest, LoopbackAnswer) -> LoopbackAnswer
    ) {
        let resource = LoopbackResource(.pattern(count: count), etag: etag)
        server.route("GET", path) { request in
            let right = resource.answer(to: request)
            return request.method == "GET" ? answer(request, right) : right
        }
    }

    /// Lets a run receive a part of `/file`, and ends it with a signal.
    func stop(by signal: Int32, count: Int, _ arguments: [String] = []) async throws -> ProgramRun.End {
        let gate = Gate()
        defer { gate.open() }
        stall("/file", count: count, first: 400_000, until: gate)
        let process = try start(arguments + ["--json", url("/file")])
        #expect(await process.wrote("\"event\":\"progress\""))
        // The first progress may be too small for a metadata file. A kill would then leave nothing to resume.
        try await waitUntil("there is a metadata") { names.contains { $0.hasSuffix(".metadata") } }
        process.send(signal)
        return await process.end()
    }

    /// The names in the folder, including hidden ones.
    var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []).sorted() }

    func holds(_ name: String, count: Int) -> Bool {
        guard let data = FileManager.default.contents(atPath: folder.appending(path: name).path) else { return false }
        return data.count == count && data.withUnsafeBytes { TestPattern.matches($0) }
    }

    func write(_ text: String, to name: String) throws -> String {
        let url = folder.appending(path: name)
        try Data(text.utf8).write(to: url)
        return url.path
    }

    /// The starts of the requested ranges.
    var rangeStarts: [Int] {
        server.requests.compactMap { $0["Range"] }.compactMap { Int($0.dropFirst(6).prefix { $0 != "-" }) }
    }
}

/// A line of the log, as a program would read it.
struct LogLine: Decodable {
    let event: String
    let index: Int?
    let bytes: Int64?
    let resumed: Int64?
    let discarded: Int64?
    let exit: Int32?
    let code: String?
    let message: String?

    static func all(_ text: String) throws -> [LogLine] {
        try text.split(separator: "\n").map { try JSONDecoder().decode(LogLine.self, from: Data($0.utf8)) }
    }
}
