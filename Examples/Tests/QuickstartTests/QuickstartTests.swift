// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import ScreenModel
import TerminalTestSupport
import Testing

#if canImport(FoundationXML)
    import FoundationXML
#endif

/// Tests the quickstart in a terminal, in a pipe, and with interruptions.
@Suite(.timeLimit(.minutes(4)))
struct QuickstartTests {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("quickstart-\(UUID())")

    private func run(_ place: ProgramRun.Place) throws -> ProgramRun {
        try ProgramRun("quickstart", [folder.path], in: place)
    }

    /// Deletes the folder of a run, and returns the names of its files.
    private func files() -> [String] {
        let names = try? FileManager.default.contentsOfDirectory(atPath: folder.path)
        try? FileManager.default.removeItem(at: folder)
        return (names ?? []).sorted()
    }

    private struct Trace: Decodable {
        struct Event: Decodable {
            let name: String
            let ph: String
            var dur: Double?
            var args: [String: String]?
        }

        let traceEvents: [Event]
    }

    @Test func `in a pipe, the program prints plain lines and ends as expected`() async throws {
        let program = try run(.pipe)
        let code = await program.exitCode()
        let text = program.output
        #expect(code == 0, "\(text)")
        #expect(!text.contains("\u{1B}") && !text.contains("\r"))
        let wanted = [
            "1. Sign in", "16 albums", "1 refresh", "attempt 1 failed, status 503", "attempt 2 failed, truncatedBody",
            "cover.png  5.00 MB", "canceled the group and everything in it", "bytes arrived in 0.6 seconds",
            "recording.flac  8.00 MB", "picture.svg", "trace.json", "ui.perfetto.dev",
        ]
        for piece in wanted { #expect(text.contains(piece), "\(piece) is missing in: \(text)") }
        #expect(text.hasSuffix("All steps succeeded.\n"))

        let data = try Data(contentsOf: folder.appendingPathComponent("trace.json"))
        let events = try JSONDecoder().decode(Trace.self, from: data).traceEvents
        let ran = events.filter { $0.ph == "X" }
        for name in ["AlbumList", "album 1", "charts", "upload", "recording of 1", "everything"] {
            #expect(ran.contains { $0.name == name }, "\(name) is not in the trace")
        }
        #expect(ran.contains { $0.name.contains("attempt 3") }, "\(Set(ran.map(\.name)))")
        #expect(ran.first { $0.name == "everything" }?.args?["ended"] == "cancelled")
        #expect(ran.allSatisfy { $0.dur ?? -1 >= 0 })
        let picture = try String(contentsOf: folder.appendingPathComponent("picture.svg"), encoding: .utf8)
        #expect(picture.hasPrefix("<svg ") && picture.hasSuffix("</svg>\n") && picture.contains(">charts</text>"))
        #expect(XMLParser(data: Data(picture.utf8)).parse())
        #expect(files() == ["picture.svg", "trace.json"])
    }

    @Test("In a terminal, the program never writes past the edge, and restores the cursor", arguments: [80, 40])
    func terminal(columns: Int) async throws {
        let program = try run(.terminal(columns: columns, rows: 24))
        let code = await program.exitCode()
        #expect(code == 0, "\(program.output)")
        var screen = ScreenModel(columns: columns)
        screen.write(program.output)
        #expect(screen.complaints == [] && !screen.isCursorHidden)
        #expect(screen.text.last == "All steps succeeded." && screen.text.contains { $0.hasPrefix("7. A download") })
        // Progress bars were drawn and removed.
        #expect(program.output.contains("━") && !screen.text.contains { $0.contains("━") })
        _ = files()
    }

    @Test(
        "After an interruption, the program cancels its operations and ends cleanly",
        arguments: ["3. A token", "5. An upload", "6. Everything", "7. A download"], [SIGINT, SIGTERM])
    func interrupted(at chapter: String, by signal: Int32) async throws {
        let program = try run(.terminal(columns: 80, rows: 24))
        await program.output(with: chapter)
        program.send(signal)
        let end = await program.end()
        var screen = ScreenModel(columns: 80)
        screen.write(program.output)
        #expect(end.status == 128 + signal && end.isBySignal, "\(program.output)")
        #expect(screen.complaints == [])
        #expect(!screen.isCursorHidden)
        #expect(screen.text.last?.hasPrefix("Interrupted: ") == true, "\(screen.text)")
        // A canceled download leaves only the files that it needs to resume.
        #expect(!files().contains { !$0.hasPrefix(".") })
    }

    @Test func `Ctrl-Z restores the terminal, and the program resumes afterwards`() async throws {
        let program = try ProgramRun(
            "quickstart", [folder.path], in: .terminal(columns: 80, rows: 24),
            shell: ProgramRun.goingOnAfterStop)
        // A progress bar is displayed.
        let text = await program.output(with: "\u{1B}[?25l")
        let job = try #require(text.firstMatch(of: /job ([0-9]+)\./)?.1)
        kill(try #require(Int32(job)), SIGTSTP)
        await program.output(with: "stopped")
        let code = await program.exitCode()
        #expect(code == 0 && program.output.contains("status 0"), "\(program.output)")
        // Each time the cursor was hidden, it was shown again before the shell printed a line.
        let before = program.output.components(separatedBy: "stopped")[0]
        func count(_ text: String) -> Int { before.components(separatedBy: text).count }
        #expect(count("\u{1B}[?25h") == count("\u{1B}[?25l"))
        _ = files()
    }

    @Test(arguments: [("--help", 0), ("--nonsense", 2)]) func `an argument that begins with a dash is not a folder`(
        option: String, code: Int32
    ) async throws {
        let program = try ProgramRun("quickstart", [option])
        #expect(await program.exitCode() == code)
        #expect(program.output.contains("Usage: quickstart [folder]"))
    }

    @Test func `if nothing can be written, the program says so and fails`() async throws {
        let file = folder.appendingPathExtension("txt")
        try Data("in the way".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let program = try ProgramRun("quickstart", [file.appendingPathComponent("folder").path])
        #expect(await program.exitCode() == 1)
        #expect(program.output.contains("A step failed: "))
    }
}
