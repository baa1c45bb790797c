// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit
import ScreenModel
import TerminalTestSupport
import Testing

@Suite("opget and signals", .timeLimit(.minutes(2)))
struct SignalTests {
    private static let size = 1 << 20
    private let bench: OpgetBench
    private let gate = Gate()

    init() throws {
        bench = try OpgetBench()
        bench.stall("/file", count: Self.size, first: 500_000, until: gate)
    }

    private func start(columns: Int? = nil, _ shell: @escaping (String) -> String) async throws -> ProgramRun {
        let process = try bench.start(["--json", bench.url("/file")], columns: columns, shell: shell)
        #expect(await process.wrote("\"event\":\"progress\""))
        return process
    }

    @Test(arguments: [(SIGHUP, "HUP"), (SIGINT, "INT"), (SIGTERM, "TERM")])
    func `signals that were ignored at the start stay ignored`(signal: Int32, name: String) async throws {
        defer { gate.open() }
        let process = try await start { "trap '' \(name); exec \($0)" }
        process.send(signal)
        gate.open()
        let end = await process.end()
        #expect(end.status == 0 && bench.holds("file", count: Self.size), "\(end)")
    }

    @Test(arguments: [SIGHUP, SIGINT, SIGTERM])
    func `opget ends by the signal that stopped it`(signal: Int32) async throws {
        defer { gate.open() }
        let process = try await start { "exec \($0)" }
        process.send(signal)
        let end = await process.end()
        #expect(end.status == 128 + signal && end.isBySignal)
        #expect(try LogLine.all(end.output).last?.exit == 128 + signal)
        #expect(end.errors.contains("--continue"))
    }

    @Test func `Ctrl-C also ends the check of an existing file`() async throws {
        let file = try FileHandle(forWritingTo: URL(filePath: bench.write("", to: "large")))
        // The file takes no space on the disk, but takes long to read.
        try file.truncate(atOffset: 16 << 30)
        try file.close()
        let sum = "--checksum=sha256=" + String(repeating: "0", count: 64)
        let process = try bench.start(["-c", sum, "--json", bench.url("/large")])
        #expect(await process.wrote("\"event\":\"begin\""))
        process.send(SIGINT)
        let end = await process.end()
        #expect(end.status == 130 && end.isBySignal, "\(end)")
    }

    @Test func `with --quiet, each failure and the interruption are reported once, and complete files are kept`()
        async throws
    {
        defer { gate.open() }
        let paths = (0..<20).map { "/good\($0)" }
        for path in paths { bench.serve(path, count: 10_000) }
        bench.server.route("GET", "/missing") { _ in .status(404) }
        _ = try bench.write("old", to: "good7")
        let process = try bench.start(["-q", "--retries=0"] + (["/file", "/missing"] + paths).map(bench.url))
        try await waitUntil("all other files are there") { bench.names.filter { !$0.hasPrefix(".") }.count == 20 }
        #expect(await process.wrote("404"))
        #expect(await process.wrote("The file good7 already exists."))
        process.send(SIGINT)
        let end = await process.end()
        #expect(end.status == 128 + SIGINT && end.isBySignal && end.output.isEmpty, "\(end)")
        #expect(end.errors.split(separator: "\n").count == 3 && end.errors.contains("Interrupted."), "\(end)")
        for number in 0..<20 { #expect(bench.holds("good\(number)", count: 10_000) != (number == 7)) }
    }

    @Test(arguments: [1, 30, 90, 149])
    func `with --quiet, an interruption while many files are downloaded leaves only complete files`(count: Int)
        async throws
    {
        gate.open()
        let paths = (0..<150).map { "/good\($0)" }
        for path in paths { bench.serve(path, count: 10_000) }
        let process = try bench.start(["-q", "-i", "-"], input: paths.map(bench.url).joined(separator: "\n"))
        var names: [String] { bench.names.filter { !$0.hasPrefix(".") } }
        try await waitUntil("some files are there") { names.count >= count }
        process.send(SIGINT)
        let end = await process.end()
        for name in names { #expect(bench.holds(name, count: 10_000)) }
        if end.status == 0 {
            #expect(names.count == 150 && end.errors.isEmpty, "\(end)")
        } else {
            #expect(end.status == 128 + SIGINT && end.isBySignal, "\(end)")
            #expect(end.errors.components(separatedBy: "Interrupted.").count == 2, "\(end)")
            #expect(end.errors.split(separator: "\n").count == 1, "\(end)")
        }
    }

    @Test func `Ctrl-Z restores the terminal, and opget resumes afterwards`() async throws {
        defer { gate.open() }
        let process = try await start(columns: 80, ProgramRun.goingOnAfterStop)
        #expect(await process.wrote("job "))
        #expect(await process.wrote("\u{1B}[?25l"))
        kill(try job(of: process), SIGTSTP)
        // The program stopped, and draws again when it resumes.
        #expect(await process.wrote("stopped"))
        #expect(await process.wrote("\u{1B}[?25l", times: 2))
        gate.open()
        let end = await process.end()
        #expect(end.output.contains("status 0") && bench.holds("file", count: Self.size), "\(end)")
        // The cursor was shown, hidden again, and shown at the end.
        #expect(end.errors.components(separatedBy: "\u{1B}[?25h").count == 3)
    }

    @Test func `without a shell with job control, Ctrl-Z does not stop opget forever`() async throws {
        defer { gate.open() }
        let process = try await start(columns: 80) { "exec setsid sh -c 'echo job $$.; exec \"$0\" \"$@\"' \($0)" }
        #expect(await process.wrote("\u{1B}[?25l"))
        kill(try job(of: process), SIGTSTP)
        // The program restored the terminal, was not stopped, and draws again.
        #expect(await process.wrote("\u{1B}[?25l", times: 2))
        gate.open()
        _ = await process.end()
        #expect(bench.holds("file", count: Self.size))
    }

    /// The process number that the script printed.
    private func job(of process: ProgramRun) throws -> Int32 {
        let words = process.output.split(whereSeparator: \.isWhitespace)
        let place = try #require(words.firstIndex(of: "job"))
        return try #require(Int32(words[place + 1].dropLast()))
    }

    @Test func `a second Ctrl-C ends opget immediately`() async throws {
        defer { gate.open() }
        // The log is larger than the pipe and is not read, so a regular end has to wait.
        let log = bench.folder.appending(path: "log").path
        #expect(mkfifo(log, 0o600) == 0)
        let descriptor = open(log, O_RDWR)
        defer { close(descriptor) }
        let others = (0..<1_500).map { "\(bench.url("/file?\($0)")) out=file\n" }
        let process = try bench.start(
            ["--json=\(log)", "-i", "-", bench.url("/file"), "-O"], columns: 80, input: others.joined())
        #expect(await process.wrote("%"))
        process.send(SIGINT)
        #expect(await process.wrote("Interrupted."))
        process.send(SIGINT)
        let end = await process.end()
        #expect(end.status == 130 && end.isBySignal)
        var screen = ScreenModel(columns: 80)
        screen.write(end.errors)
        #expect(!screen.isCursorHidden)
    }

    @Test func `a log in a terminal is written without progress bars`() async throws {
        gate.open()
        let process = try ProgramRun(
            "opget", ["-d", bench.folder.path, "--json", bench.url("/file")], in: .terminal(columns: 80, rows: 24))
        let end = await process.end()
        #expect(end.status == 0 && !end.output.contains("\u{1B}"), "\(end)")
        #expect(end.output.contains("\"event\":\"end\""))
    }
}
