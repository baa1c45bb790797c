// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Server text in messages and logs", .timeLimit(.minutes(1)))
struct PrintableTextTests {
    private static let evil =
        "a\r\nFAKE \u{1B}[2J\u{7F}\u{85}\u{9B}31m\u{202E}\u{2066}\u{200F}\u{2028}\u{2029}\u{0}\u{FEFF}b"

    private static func isPrintable(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: false
            default: true
            }
        }
    }

    @Test(arguments: [
        ("", ""), ("plain text, ~", "plain text, ~"), ("é 日本 👩\u{200D}🔧", "é 日本 👩\u{200D}🔧"), ("a\tb\nc\rd", "a b c d"),
        ("\u{1B}[2J", " [2J"), ("a\u{202E}b\u{2069}c", "abc"), ("\u{85}\u{2028}", "  "),
    ])
    func `control characters become spaces, and bidirectional control characters are removed`(
        _ text: String, _ shown: String
    ) {
        #expect(text.printable() == shown)
        #expect(Self.isPrintable(Self.evil.printable()))
        #expect("a\n\tb\r\u{1B}".printable(keepsLines: true) == "a\n\tb  ")
    }

    @Test func `a quotation is printable, limited in length and free of secrets`() {
        let quotation = (String(repeating: Self.evil, count: 100) + "token=S3CRET").quoted()
        #expect(quotation.count == 101 && quotation.hasSuffix("…") && Self.isPrintable(quotation))
        #expect("text/x; token=S3CRET".quoted() == "text/x; token=***")
    }

    @Test func `an error contains no control characters from a server`() throws {
        let underlying = NetworkError.Underlying(domain: "libcurl", number: 1, text: Self.evil)
        let error = NetworkError(
            code: .transferFailed, phase: .receiving, message: Self.evil, underlying: underlying)
        #expect(Self.isPrintable("\(error)") && Self.isPrintable(error.message) && Self.isPrintable(underlying.text))
        let body = try JSONEncoder().encode([Self.evil: "text"])
        let thrown = #expect(throws: DecodingError.self) { try JSONDecoder().decode([String: Int].self, from: body) }
        let decoding = NetworkError(try #require(thrown), phase: .evaluating)
        #expect(Self.isPrintable(decoding.message) && decoding.message.contains("FAKE"), "\(decoding)")
        var failed = decoding
        failed.bodyPrefix = Data("one\ntwo\u{1B}[2J".utf8)
        #expect(failed.report(showingBody: true).hasSuffix("body: one\n  two [2J"))
    }

    @Test func `a server cannot forge log lines`() throws {
        let entries = EventRecorder<String>()
        let log = NetworkLog(level: .bodies, redaction: .none) { entries.record($0) }
        let url = try #require(URL(string: "https://example.com/"))
        var event = NetworkEvent(.responded)
        event.request = try NetworkRequest(url: url)
        event.head = ResponseHead(url: url, status: 200, headers: ["X": Self.evil, "Y\u{1B}": "z"])
        log.observe(event)
        event = NetworkEvent(.attemptEnded)
        event.ending = .success
        event.responseBody = Data("one\n✓ #1 \u{1B}[2J\(Self.evil)".utf8)
        log.observe(event)
        let lines = entries.events.flatMap { $0.split(separator: "\n").map(String.init) }
        #expect(lines.allSatisfy(Self.isPrintable))
        #expect(lines.count { !$0.hasPrefix("  ") } == 2, "\(lines)")
        #expect(Self.isPrintable("\(event.head?.headers ?? [:])"))
    }

    @Test func `a Content-Type is quoted without terminal control characters`() async throws {
        let bench = try OperationBench()
        bench.server.route("GET", "/api/a") { _ in
            .text("a").with("Content-Type", "text/x\rFAKE LINE\u{1B}[2J; token=S3CRET")
        }
        let operation = bench.base.get("a", as: [String].self)
        let error = try #require(await failure(of: operation))
        #expect(error.code == .unacceptableContentType && Self.isPrintable("\(error)"))
        #expect(error.message.contains("text/x FAKE LINE [2J; token=***"), "\(error)")
    }
}
