// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit
import Testing

@Suite("opget downloads", .timeLimit(.minutes(2)))
struct DownloadingTests {
    private let bench: OpgetBench

    init() throws { bench = try OpgetBench() }

    @Test func `a file is downloaded, and a line reports it`() async throws {
        bench.serve("/file.bin", count: 300_000)
        let end = try await bench.run([bench.url("/file.bin")])
        #expect(end.status == 0)
        #expect(end.errors.hasPrefix("✓ file.bin  300 kB in "))
        #expect(end.output.isEmpty && !end.errors.contains("\u{1B}"))
        #expect(bench.holds("file.bin", count: 300_000))
        #expect(bench.names == ["file.bin"])
    }

    @Test func `a list may contain comments, names and checksums`() async throws {
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

    @Test func `a file name from a server does not lead outside the directory`() async throws {
        bench.server.route("GET", "/get") { _ in
            .text("x").with("Content-Disposition", "attachment; filename=\"../../evil\"")
        }
        #expect(try await bench.run([bench.url("/get")]).status == 0)
        #expect(bench.names == ["evil"])
        #expect(try await bench.run(["-O", bench.url("/get")]).status == 0)
        #expect(bench.names == ["evil", "get"])
    }

    @Test func `an existing file is an error, is kept, or is replaced, as the options say`() async throws {
        bench.serve("/file", count: 1_000)
        _ = try bench.write("old", to: "file")
        let refused = try await bench.run([bench.url("/file")])
        #expect(refused.status == 6 && refused.errors.contains("--continue"))
        let count = bench.server.counts.requests
        let skipped = try await bench.run(["--continue", bench.url("/file")])
        #expect(skipped.status == 0 && skipped.errors.contains("already exists"))
        #expect(bench.server.counts.requests == count)
        #expect(try await bench.run(["--overwrite", bench.url("/file")]).status == 0)
        #expect(bench.holds("file", count: 1_000))
    }

    @Test(arguments: [[], ["-s", "2"]])
    func `--continue does not count a folder or a link that leads nowhere as a file`(arguments: [String]) async throws {
        let (folder, link) = (bench.folder.appending(path: "folder"), bench.folder.appending(path: "link"))
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(atPath: link.path, withDestinationPath: "nowhere")
        for name in ["folder", "link"] {
            bench.serve("/\(name)", count: 4 << 20)
            let end = try await bench.run(arguments + ["-c", "--json", bench.url("/\(name)")])
            #expect(end.status == 6 && end.errors.contains("\(name) already exists, but is not a file."), "\(end)")
            #expect(try LogLine.all(end.output).filter { $0.event == "fail" }.count == 1)
        }
        #expect(bench.names == ["folder", "link"])
    }

    @Test(arguments: [[], ["-s", "2"]])
    func `a name that is too long is an error before the download`(arguments: [String]) async throws {
        bench.serve("/file", count: 4 << 20)
        let long = String(repeating: "x", count: 300)
        let end = try await bench.run(arguments + ["-o", long, bench.url("/file")])
        #expect(end.status == 6 && end.errors.lowercased().contains("too long"), "\(end)")
        #expect(!bench.server.requests.contains { $0.method == "GET" } && bench.names.isEmpty)
    }

    @Test func `a wrong checksum is an error`() async throws {
        bench.server.route("GET", "/sum") { _ in .text("123456789") }
        let wrong = try await bench.run(["--checksum=crc32=00000000", bench.url("/sum")])
        #expect(wrong.status == 5 && wrong.errors.contains("crc32"))
        #expect(bench.names.isEmpty)
        #expect(try await bench.run(["--checksum=crc32=CBF43926", bench.url("/sum")]).status == 0)
    }

    @Test func `failures have messages, and the first URL determines the exit code`() async throws {
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
    func `an invalid command line is reported before anything is downloaded`(arguments: [String]) async throws {
        let end = try await bench.run(arguments)
        #expect(end.status == 2)
        #expect(end.errors.contains("Nothing was downloaded"))
        #expect(!end.errors.contains("\u{1B}"))
    }

    @Test func `with --quiet, only failures are printed`() async throws {
        bench.serve("/file", count: 1_000)
        let end = try await bench.run(["-q", bench.url("/file")])
        #expect(end.status == 0 && end.errors.isEmpty && end.output.isEmpty)
        let help = try await bench.run(["--help"])
        #expect(help.status == 0 && help.output.contains("--limit-rate") && help.errors.isEmpty)
        #expect(help.output.split(separator: "\n").allSatisfy { $0.count <= 80 })
    }

    @Test func `with --quiet, many files are downloaded, and each one that exists is reported`() async throws {
        let paths = (0..<30).map { "/file\($0)" }
        for path in paths { bench.serve(path, count: 10_000) }
        for number in [7, 20] { _ = try bench.write("old", to: "file\(number)") }
        let end = try await bench.run(["-q", "-i", "-"], input: paths.map(bench.url).joined(separator: "\n"))
        #expect(end.status == 6)
        for number in 0..<30 {
            let isOld = [7, 20].contains(number)
            #expect(end.errors.contains("The file file\(number) already exists.") == isOld, "\(end)")
            #expect(bench.holds("file\(number)", count: 10_000) != isOld, "\(number)")
        }
        #expect(bench.names.count == 30)
    }

    @Test func `the number of connections to a host is limited`() async throws {
        let urls = (0..<12).map { "/file\($0)" }
        for url in urls { bench.serve(url, count: 50_000) }
        let end = try await bench.run(["-j", "12", "--per-host", "2"] + urls.map(bench.url))
        #expect(end.status == 0)
        #expect(bench.server.counts.connections <= 2)
        #expect(bench.server.counts.requests == 12)
    }

    @Test func `a download that waits for its host does not delay other hosts, even with --overwrite`() async throws {
        let (gate, other) = (Gate(), try LoopbackServer())
        defer { gate.open() }
        for path in ["/a", "/b", "/c"] { bench.stall(path, count: 1_000, first: 10, until: gate) }
        let resource = LoopbackResource(.pattern(count: 1_000))
        other.route("GET", "/other") { resource.answer(to: $0) }
        let urls = ["/a", "/b", "/c"].map(bench.url) + [other.url("/other").absoluteString]
        let process = try bench.start(["-f", "-j", "2", "--per-host", "1", "--json"] + urls)
        #expect(await process.wrote("\"event\":\"done\""))
        _ = await bench.server.heads(atLeast: 1)
        #expect(bench.server.requests.count == 1)
        gate.open()
        let end = await process.end()
        #expect(end.status == 0 && bench.names == ["a", "b", "c", "other"], "\(end)")
    }

    @Test func `a rate limit is respected`() async throws {
        let count = 2_200_000
        bench.serve("/file", count: count)
        let start = ContinuousClock.now
        let end = try await bench.run(["--limit-rate=1M", "-s", "2", bench.url("/file")])
        #expect(end.status == 0)
        // The bytes after the initial burst take their time. Any additional time depends on the machine.
        #expect(ContinuousClock.now - start >= .milliseconds(2_000))
        #expect(bench.rangeStarts.count == 2 && bench.holds("file", count: count))
    }

    @Test func `an existing file is kept only if its checksum is correct`() async throws {
        let path = try bench.write("123456789", to: "sum")
        bench.server.route("GET", "/sum") { _ in .text("123456789") }
        let good = try await bench.run(["-c", "--checksum=crc32=CBF43926", bench.url("/sum")])
        #expect(good.status == 0 && good.errors.contains("already exists"))
        for arguments in [[], ["-s", "2"]] {
            let bad = try await bench.run(arguments + ["-c", "--checksum=crc32=00000000", bench.url("/sum")])
            #expect(bad.status == 5 && bad.errors.contains("--overwrite"), "\(bad)")
        }
        #expect(bench.server.counts.requests == 0)
        #expect(try Data(contentsOf: URL(filePath: path)) == Data("123456789".utf8))
        // Only the server knows the file name.
        bench.server.route("GET", "/other") { _ in
            .text("x").with("Content-Disposition", "attachment; filename=\"sum\"")
        }
        let other = try await bench.run(["-c", "--checksum=crc32=00000000", bench.url("/other")])
        #expect(other.status == 5)
    }

    @Test(arguments: [[], ["-s", "4"], ["-O"], ["-j", "1"]])
    func `two files of the same name never overwrite each other`(arguments: [String]) async throws {
        let count = arguments == ["-s", "4"] ? 4 << 20 : 1_000
        bench.serve("/a/file", count: count)
        bench.serve("/b/file", count: count)
        for isThere in [false, true] {
            if isThere { _ = try bench.write("old", to: "file") }
            let end = try await bench.run(arguments + ["-f", bench.url("/a/file"), bench.url("/b/file")])
            #expect(end.status == 6 && end.errors.contains("with the same name"), "\(end)")
            #expect(end.errors.contains("1 of 2 downloaded, 1 failed"), "\(end)")
            #expect(bench.holds("file", count: count))
            #expect(bench.names == ["file"])
            try FileManager.default.removeItem(at: bench.folder.appending(path: "file"))
        }
    }

    @Test func `a list may have a byte order mark and repeat its URLs`() async throws {
        bench.serve("/a", count: 1_000)
        bench.serve("/b", count: 1_000)
        let (a, b) = (bench.url("/a"), bench.url("/b"))
        let end = try await bench.run(["-i", "-"], input: "\u{FEFF}\(a)\r\n\(b)\r\n\(a)\r\n")
        #expect(end.status == 0 && end.errors.contains("URLs that occur more than once, and are downloaded once: 1."))
        #expect(end.errors.contains("2 of 2 downloaded"))
        #expect(bench.server.counts.requests == 2)
        let again = try await bench.run(["-c", "-i", "-"], input: "\(a)\n\(b)\n")
        #expect(again.status == 0 && again.errors.contains("Nothing to do: 2 skipped."))
    }

    @Test func `a file name may begin with a tilde`() async throws {
        bench.serve("/file", count: 1_000)
        #expect(try await bench.run(["-o", "~opget-test", bench.url("/file")]).status == 0)
        #expect(bench.holds("~opget-test", count: 1_000))
        let end = try await bench.run(["-i", "-"], input: "\(bench.url("/file")) out=~/escaped\n")
        #expect(end.status == 2 && end.errors.contains("must name a file in the directory"))
    }

    @Test func `secrets are neither shown nor logged`() async throws {
        let refused = try await bench.run(["ftp://user:secret@h/f?token=abc", "https://user:secret@"])
        #expect(refused.status == 2 && refused.errors.contains("ftp://"))
        let url = bench.url("/gone?X-Amz-Signature=abc").replacing("http://", with: "http://user:secret@")
        let failed = try await bench.run(["-r", "0", "--json", url])
        #expect(failed.status == 4 && failed.errors.contains("/gone") && failed.output.contains("/gone"))
        for text in [refused.errors, failed.errors, failed.output] {
            #expect(!text.contains("secret") && !text.contains("abc"), "\(text)")
        }
    }

    @Test func `the log reports the beginning of each file before anything else`() async throws {
        let paths = (0..<5).map { "/file\($0)" }
        for path in paths { bench.serve(path, count: 100_000) }
        let end = try await bench.run(["-j", "2", "--json"] + paths.map(bench.url))
        let lines = try LogLine.all(end.output)
        for index in paths.indices {
            #expect(lines.filter { $0.index == index }.map(\.event).first == "begin")
            #expect(lines.filter { $0.index == index && $0.event == "begin" }.count == 1)
        }
    }

    @Test func `a log that cannot be written is a failure`() async throws {
        bench.serve("/file", count: 1_000)
        let end = try await bench.run(["--json=/dev/full", bench.url("/file")])
        #expect(end.status == 6 && end.errors.contains("The log is incomplete"))
        #expect(bench.holds("file", count: 1_000))
    }

    @Test func `a reader that closes the log early stops no download`() async throws {
        let paths = (0..<8).map { "/file\($0)" }
        for path in paths { bench.serve(path, count: 1_000) }
        let end = try await bench.run(["--json"] + paths.map(bench.url)) { command in
            "{ \(command); echo \"status $?\" >&2; } | head -n 1"
        }
        #expect(end.errors.contains("status 0"), "\(end)")
        #expect(paths.allSatisfy { bench.holds(String($0.dropFirst()), count: 1_000) })
    }

    @Test func `opget writes no message into another file if the standard streams are closed`() async throws {
        let paths = (0..<3).map { "/file\($0)" }
        for path in paths { bench.serve(path, count: 1_000) }
        let log = bench.folder.appending(path: "log").path
        let end = try await bench.run(["--json=\(log)"] + paths.map(bench.url)) { command in
            "\(command) <&- >&- 2>&-; echo status $?"
        }
        #expect(end.output.contains("status 0") && end.errors.isEmpty, "\(end)")
        #expect(try LogLine.all(String(contentsOfFile: log, encoding: .utf8)).last?.event == "end")
        #expect(paths.allSatisfy { bench.holds(String($0.dropFirst()), count: 1_000) })
    }

    @Test func `a log in a file has a line for each event`() async throws {
        bench.serve("/file", count: 1_000)
        let log = bench.folder.appending(path: "log").path
        #expect(try await bench.run(["--json=\(log)", "-q", bench.url("/file")]).status == 0)
        let text = try String(contentsOfFile: log, encoding: .utf8)
        #expect(try LogLine.all(text).map(\.event).filter { $0 != "progress" } == ["begin", "done", "end"])
    }
}
