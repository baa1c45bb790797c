// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// A response with secrets, and the parts of it that must be in the file.
struct SecretCase: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let answer: StubAnswer
    var kept: [String] = []
    /// The reason that the body cannot be played, or `nil` if it can.
    var gap: RecordedBody.Gap?

    static let secret = "t0ps3cret"

    private static func json(_ text: String) -> StubAnswer { .json(text) }

    private static func with(_ fields: HeaderFields) -> StubAnswer {
        StubAnswer(.head(200, fields))
    }

    static let all: [SecretCase] = [
        SecretCase(
            testDescription: "a token's answer that breaks off",
            answer: StubAnswer(
                .head(200, ["Content-Type": "application/json"]),
                .bytes(#"{"expires":5,"access_token":"\#(secret)"#), .fail(.connectionLost)),
            kept: [#"\"expires\":5,\"access_token\":\"***"#]),
        SecretCase(
            testDescription: "a body that breaks off within an escape",
            answer: StubAnswer(
                .head(200, ["Content-Type": "application/json"]),
                .bytes(#"{"token":"\#(secret)","next":"/a?token=\#(secret)\u00"#), .fail(.connectionLost)),
            kept: ["/a?token=***"]),
        SecretCase(
            testDescription: "JSON with a mark of its bytes' order",
            answer: json("\u{FEFF}" + #"{"token":"\#(secret)"}"#)),
        SecretCase(
            testDescription: "JSON in two bytes for each character",
            answer: .data(
                Data(#"{"token":"\#(secret)"}"#.utf16.flatMap { [UInt8($0 & 0xFF), 0] }), type: "application/json"),
            gap: .opaque),
        SecretCase(
            testDescription: "what is called JSON and is none",
            answer: json("token=\(secret)"), gap: .opaque),
        SecretCase(
            testDescription: "a piece out of the middle of JSON",
            answer: json(#"oken": "\#(secret)", "a": 1}"#), gap: .opaque),
        SecretCase(
            testDescription: "a compressed body that was not decompressed",
            answer: json(#"{"token":"\#(secret)"}"#).with("Content-Encoding", "br"), gap: .opaque),
        SecretCase(
            testDescription: "JSON by lines",
            answer: .data(
                Data("{\"token\":\"\(secret)\"}\n{\"token\":\"\(secret)\",\"n\":1}\n".utf8),
                type: "application/x-ndjson"),
            kept: [#"\"n\":1"#]),
        SecretCase(
            testDescription: "escaped signs in addresses",
            answer: json(
                #"{"next":"https:\/\/ada:\#(secret)@x.y\/a?page=2\u0026token=\#(secret)","text":"a \u00e9 \/"}"#),
            kept: [#"https://***@x.y/a?page=2&token=***"#, #"a \\u00e9 \\/"#]),
        SecretCase(
            testDescription: "a secret with a comma, in a text",
            answer: json(#"{"text":"see /a?token=\#(secret),\#(secret), and (C#), a@b.c, #1"}"#),
            kept: ["see /a?token=*** and (C#), a@b.c, #1"]),
        SecretCase(
            testDescription: "secrets that only the words of a text name",
            answer: json(
                #"{"pairs":[{"name":"password","value":"\#(secret)"},{"name":"a","value":"b"}],"#
                    + #""form":"a=1&password=\#(secret)&b=2","headers":["Authorization: Bearer \#(secret)"],"#
                    + #""query":"{ login(user: \"ada\", password: \"\#(secret)\") }","inner":"{\"token\":\"\#(secret)\"}"}"#
            ),
            kept: [
                #"{\"name\":\"password\",\"value\":\"***\"},{\"name\":\"a\",\"value\":\"b\"}"#, "a=1&password=***&b=2",
                "Authorization: ***", #"user: \\\"ada\\\""#,
            ]),
        SecretCase(
            testDescription: "pairs in whatever order, one within another",
            answer: json(
                #"[{"value":"\#(secret)","name":"password"},{"key":"api_key","value":"\#(secret)"},"#
                    + #"{"value":{"value":"b","name":"a"},"name":"token"},{"value":7,"name":"pin"},{"value":"c","name":"d"}]"#
            ),
            kept: [
                #"[{\"value\":\"***\",\"name\":\"password\"}"#, #"{\"value\":0,\"name\":\"pin\"}"#,
                #"{\"value\":\"c\",\"name\":\"d\"}"#,
            ]),
        SecretCase(
            testDescription: "signs that join others",
            answer: StubAnswer(
                .head(
                    200,
                    [
                        "Content-Type": "application/x-www-form-urlencoded",
                        "Location": "/a?\u{301}b=1&\u{301}token=\(secret)", "Link": "<x>,\u{301}//u:\(secret)@\u{301}h",
                        "Set-Cookie": "a=\(secret); Path=/,\u{301}b=\(secret);\u{301} Path=/",
                    ]), .bytes("a=1&\u{301}password=\(secret)&b=2"))),
        SecretCase(
            testDescription: "a form",
            answer: .data(
                Data("a=1&password=\(secret)#\(secret)&b=2".utf8), type: "application/x-www-form-urlencoded"),
            kept: ["a=1&password=***&b=2"]),
        SecretCase(
            testDescription: "a form in no known text",
            answer: .data(
                Data([0xFF, 0xFE]) + Data("password=\(secret)".utf8), type: "application/x-www-form-urlencoded"),
            gap: .opaque),
        SecretCase(
            testDescription: "fragments of addresses",
            answer: with([
                "Location": "https://app/cb#access_token=\(secret)&state=1",
                "Content-Location": "https://app/cb?a=1#\(secret)",
                "Link": "<https://app/a?page=2#/cb?code=\(secret)>; rel=\"next\"", "Referer": "/a?\(secret)",
            ]),
            kept: ["https://app/cb#access_token=***&state=1", "https://app/cb?a=1#***", "page=2#/cb?code=***>; rel="]),
        SecretCase(
            testDescription: "cookies that were joined",
            answer: with([
                "Set-Cookie": "a=\(secret); Path=/, b=\(secret); Expires=Wed, 21 Oct 2026 07:28:00 GMT; HttpOnly, "
                    + "c=\(secret),d=\(secret); Expires=Wed, 21 Oct 2026 07:28:00 GMT, \(secret); Other=\(secret)"
            ]),
            kept: [
                "a=***; Path=/, b=***; Expires=Wed, 21 Oct 2026 07:28:00 GMT; HttpOnly, c=***,d=***; "
                    + "Expires=Wed, 21 Oct 2026 07:28:00 GMT, ***; ***"
            ]),
        SecretCase(
            testDescription: "a body in parts",
            answer: .data(
                Data(
                    ("--b\r\nContent-Type: application/json\r\n\r\n{\"token\":\"\(secret)\",\"a\":\"--b\"}\r\n--b\r\n"
                        + "Content-Disposition: form-data; filename=\"a\"; name=\"password\"\r\n\r\n\(secret)\r\n--b--\r\n")
                        .utf8), type: "multipart/mixed; boundary=b"),
            kept: [#"\"a\":\"--b\""#, "--recorded-boundary--", "multipart/mixed; boundary=recorded-boundary"]),
        SecretCase(
            testDescription: "headers of harmless names",
            answer: with([
                "X-Login": "Bearer \(secret)", "X-Info": "a=1; token = \(secret)",
                "X-JSON": "{\"id\":\"pin\",\"value\":\"\(secret)\"}",
                "Location": "/a;jsessionid=\(secret)/b?x=Bearer%20\(secret)&c=1",
                "WWW-Authenticate": "Basic realm=\"x\"",
            ]),
            kept: ["a=1; token = ***", "/a;jsessionid=***/b?x=***&c=1", #"Basic realm=\"x\""#]),
        SecretCase(
            testDescription: "a plain text", answer: .text("name: a\npassword\t=\t\(secret)\nthe end"),
            kept: ["name: a", "the end"]),
        SecretCase(
            testDescription: "a text in another coding than UTF-8",
            answer: .data(Data([0xE9]) + Data(" token=\(secret)\nnext".utf8), type: "text/plain; charset=iso-8859-1")),
        SecretCase(
            testDescription: "a text in two bytes for each character",
            answer: .data(Data("token=\(secret)".utf16.flatMap { [UInt8($0 & 0xFF), 0] }), type: "text/plain"),
            gap: .opaque),
        SecretCase(
            testDescription: "a form whose fields name each other, or say it by their values",
            answer: .data(
                Data("name=password&value=\(secret)&a=Bearer+\(secret)&b=%7B%22pin%22:%22\(secret)%22%7D&c=1".utf8),
                type: "application/x-www-form-urlencoded"),
            kept: ["name=password&value=***&a=***&b=***&c=1"]),
        SecretCase(
            testDescription: "JSON with a name that occurs twice, and JSON in a text",
            answer: json(
                #"{"name":"password","name":"a","value":"\#(secret)","b":"{\"k\":\"pin\",\"v\":\"\#(secret)\",\"c\":1}","#
                    + #""d":[["api_key","\#(secret)"],["e","f"]]}"#),
            kept: [#"[\"e\",\"f\"]"#]),
        SecretCase(
            testDescription: "a request in a part of a body",
            answer: .data(
                Data(
                    ("--b\r\nX-Api-Key: \(secret)\r\nContent-Type: application/http\r\n\r\nGET / HTTP/1.1\r\n"
                        + "Authorization: Bearer \(secret)\r\nAccept: a\r\n\r\n--b--\r\n").utf8),
                type: "multipart/mixed; boundary=b"),
            kept: ["Accept: a"]),
        SecretCase(
            testDescription: "a body in parts that breaks off",
            answer: StubAnswer(
                .head(200, ["Content-Type": "multipart/form-data; boundary=\"b\""]),
                .bytes("--b\r\nContent-Disposition: form-data; name=password\r\n\r\n\(secret)"), .fail(.connectionLost)),
            kept: ["--recorded-boundary"]),
    ]
}

@Suite("Secrets in recordings", .timeLimit(.minutes(3)))
struct RecordedSecretsTests {
    private let bench: RecordingBench

    init() throws {
        bench = try RecordingBench()
    }

    @Test(arguments: SecretCase.all)
    func `secrets are not recorded, and the recording can be played`(_ one: SecretCase) async throws {
        let recording = try await bench.recorded(one.answer)
        let file = try recording.file
        #expect(!file.contains(SecretCase.secret), "\(file)")
        for text in one.kept { #expect(file.contains(text), "\(text) is not in \(file)") }
        let exchange = try #require(recording.exchanges.first)
        #expect(exchange.responseBody.gap == one.gap)
        // Some bodies are recorded as base64.
        let body = String(decoding: exchange.responseBody.data ?? Data(), as: UTF8.self)
        #expect(!body.contains(SecretCase.secret))
        let live = await bench.end(bench.session)
        let played = await bench.end(PlaybackSession(recording))
        if one.gap == nil {
            #expect(played.error == live.error)
        } else {
            #expect(played.error == .notRecorded && exchange.responseBody.checksum != nil)
        }
    }

    @Test(arguments: SecretCase.all)
    func `without redaction, the whole response is recorded and played`(_ one: SecretCase) async throws {
        let recording = try await bench.recorded(one.answer, redaction: .none)
        #expect(recording.exchanges.first?.responseBody.gap == nil)
        let (live, played) = (await bench.end(bench.session), await bench.end(PlaybackSession(recording)))
        #expect(played.error == live.error)
        // Except for the boundary, which is rewritten in both the headers and the body.
        guard live.type?.hasPrefix("multipart/") != true else { return }
        #expect(played == live)
    }

    @Test func `redacted values keep their types and can be decoded`() async throws {
        struct Answer: Decodable, Equatable {
            struct Session: Decodable, Equatable {
                var id: Int
                var name: String
                var isNew: Bool
                var tags: [String?]
                var size: Double
            }
            var code: Int
            var session: Session
            var key: Int?
        }
        let text =
            #"{"code":404,"session":{"id":7,"name":"n","isNew":true,"tags":["t",null],"size":-1.5e3},"key":null}"#
        let recording = try await bench.recorded(.json(text))
        let played = await bench.end(PlaybackSession(recording))
        let answer = try JSONDecoder().decode(Answer.self, from: try #require(played.body))
        let session = Answer.Session(id: 0, name: "***", isNew: true, tags: ["***", nil], size: 0)
        #expect(answer == Answer(code: 0, session: session, key: nil))
    }

    @Test(arguments: [
        "[]", "{}", " [1, -2.5e+3 , true,null,\"a\"] ", #"{"a":{"b":[{"c":"d"}],"":""}}"#, #"{"a":"\""}"#, "1", "\"a\"",
        "{\"a\":NaN}", "{\n}\n",
    ])
    func `JSON without secrets is recorded unchanged`(_ text: String) async throws {
        #expect(try await bench.recorded(.json(text)).exchanges.first?.responseBody.text == text)
    }

    @Test(arguments: ["{", "[[", "{\"a\"", "{\"a\":", "{\"a\":\"", "{\"a\":1,", "[\"\\"])
    func `truncated JSON is recorded unchanged`(_ text: String) async throws {
        #expect(try await bench.recorded(.json(text)).exchanges.first?.responseBody.text == text)
    }

    @Test(arguments: ["]", "{]", "[}", "{1:2}", "[1 2]", "1 2", "{\"a\",", "[,", "a\"b\"", "{}}", "{}1", "[1,]"])
    func `invalid JSON with a JSON content type is opaque, but plain text is recorded`(_ text: String) async throws {
        #expect(try await bench.recorded(.json(text)).exchanges.first?.responseBody.gap == .opaque)
        #expect(try await bench.recorded(.text(text)).exchanges.first?.responseBody.text == text)
    }

    @Test func `deeply nested JSON is recorded without a crash`() async throws {
        let deep = String(repeating: "[", count: 300_000)
        #expect(try await bench.recorded(.json(deep)).exchanges.first?.responseBody.count == 300_000)
    }
}
