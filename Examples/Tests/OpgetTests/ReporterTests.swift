// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit
import Synchronization
import TerminalDisplay
import Testing

@testable import opget

@Suite("Reports about files", .timeLimit(.minutes(1)))
struct ReporterTests {
    private final class Screen: DisplayOutput {
        let frames = Mutex<[String]>([])
        var size: TerminalSize { TerminalSize(columns: 80, rows: 24) }
        func write(_ text: String) { frames.withLock { $0.append(text) } }
    }

    private func item(_ text: String = "http://h/file") throws -> DownloadItem {
        DownloadItem(index: 0, text: text, url: try #require(URL(string: text)))
    }

    @Test func `late progress does not decrease, unless the download starts again`() throws {
        let (screen, clock) = (Screen(), ManualClock(start: OperationInstant(offset: .seconds(10))))
        let display = TerminalDisplay(output: screen, style: DisplayStyle(usesColor: false), clock: clock)
        let item = try item()
        let reporter = Reporter([item], Settings(), log: nil, display: display)
        func shown(_ bytes: Int64) -> String {
            reporter.advanced(item, to: bytes, of: 1_000)
            clock.advance(by: .seconds(1))
            display.flush()
            return screen.frames.withLock { $0.last ?? "" }
        }
        #expect(shown(800).contains("80%"))
        #expect(shown(300).contains("80%"))
        reporter.found(item, resumed: 0, discarded: 800)
        #expect(shown(300).contains("30%"))
        display.finish()
    }

    @Test func `a log on a nonblocking pipe is written completely`() throws {
        let bench = try OpgetBench()
        let path = bench.folder.appending(path: "log").path
        #expect(mkfifo(path, 0o600) == 0)
        let reader = open(path, O_RDONLY | O_NONBLOCK)
        let log = try #require(RunLog(.file(path), isWaiting: false))
        // The log is larger than the buffer of the pipe, so a thread reads from the pipe in the meantime.
        let thread = Thread {
            var (buffer, lines) = ([UInt8](repeating: 0, count: 1 << 14), 0)
            while lines < 2_000 {
                let count = read(reader, &buffer, buffer.count)
                if count > 0 { lines += buffer.prefix(count).count { $0 == 10 } }
            }
            close(reader)
        }
        thread.start()
        let item = try item()
        for _ in 0..<2_000 { log.write(RunEvent("progress", item)) }
        #expect(log.problem == nil)
    }

    @Test func `after the end of a file, nothing more is reported about it`() throws {
        let (bench, screen) = (try OpgetBench(), Screen())
        let path = bench.folder.appending(path: "log").path
        let display = TerminalDisplay(output: screen, style: DisplayStyle(usesColor: false))
        let item = try item()
        let reporter = Reporter([item], Settings(), log: RunLog(.file(path)), display: display)
        reporter.began(item)
        reporter.ended(item, .skipped(path: "/file"))
        reporter.advanced(item, to: 1_000, of: 2_000)
        _ = reporter.conclude(interruptedBy: nil)
        let lines = try LogLine.all(String(contentsOfFile: path, encoding: .utf8))
        #expect(lines.map(\.event) == ["begin", "skip", "end"])
        #expect(!screen.frames.withLock { $0.joined() }.contains("50%"))
    }

    @Test func `all spellings of a host share one category`() throws {
        let hosts = HostCategories(limit: 1)
        func category(_ text: String) throws -> OperationCategory { hosts.category(of: try item(text).url) }
        #expect(try category("http://Example.com/a") == category("http://example.com:80/b"))
        #expect(try category("http://user:x@example.com/a") == category("http://EXAMPLE.com/b"))
        #expect(try category("http://example.com/a") != category("https://example.com/a"))
    }
}
