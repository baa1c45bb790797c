// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct DownloadPartsTests {
    @Test(arguments: [
        ("bytes 0-499/1234", 0, 499, 1234), ("bytes 5-5/*", 5, 5, -1), ("BYTES 1-2/3", 1, 2, 3),
        ("bytes 0-9223372036854775806/9223372036854775807", 0, 9_223_372_036_854_775_806, 9_223_372_036_854_775_807),
    ])
    func `valid content ranges are parsed`(text: String, first: Int64, last: Int64, total: Int64) throws {
        let range = try #require(ContentRange(text))
        #expect(range.bytes == first...last)
        #expect(range.total == (total < 0 ? nil : total))
    }

    @Test(arguments: [
        "", "bytes", "bytes 0-1", "bytes 0-1/1", "bytes 2-1/9", "bytes -1/9", "bytes 0-/9", "bytes */*", "bytes 0-1/x",
        "items 0-1/2", "bytes 0-1/2/3", "bytes 0-1/99999999999999999999", "bytes=0-1/2", "bytes +0-1/2", "bytes 0-1 /2",
        "bytes 9-9/9",
    ])
    func `invalid and contradictory content ranges are rejected`(text: String) {
        #expect(ContentRange(text) == nil)
    }

    @Test func `the content range of a 416 response contains only the total length`() {
        #expect(ContentRange("bytes */77")?.total == 77)
        #expect(ContentRange("bytes */77").map { $0.bytes == nil } == true)
    }

    private func head(_ fields: HeaderFields) throws -> ResponseHead {
        ResponseHead(url: try #require(URL(string: "http://example.com/")), status: 200, headers: fields)
    }

    private let date = "Sun, 06 Nov 1994 08:49:37 GMT"

    @Test func `only an ETag or a date that changes with the content is a validator`() throws {
        #expect(try DownloadValidator(of: head(["ETag": "\"a\""])) == .entityTag("\"a\""))
        #expect(try DownloadValidator(of: head(["ETag": "W/\"a\""])) == nil)
        #expect(try DownloadValidator(of: head(["ETag": "a"])) == nil)
        #expect(try DownloadValidator(of: head(["ETag": "\"a\"", "etag": "\"b\""])) == nil)
        let old: HeaderFields = ["Last-Modified": date, "Date": "Sun, 06 Nov 1994 08:50:37 GMT"]
        #expect(try DownloadValidator(of: head(old)) == .date(date))
        let fresh: HeaderFields = ["Last-Modified": date, "Date": "Sun, 06 Nov 1994 08:50:36 GMT"]
        #expect(try DownloadValidator(of: head(fresh)) == nil)
        #expect(try DownloadValidator(of: head(["Last-Modified": date])) == nil)
        var weak = old
        weak["ETag"] = "W/\"a\""
        #expect(try DownloadValidator(of: head(weak)) == nil)
    }

    @Test func `metadata that is damaged anywhere is rejected`() throws {
        var metadata = DownloadMetadata(source: "abc")
        metadata.validator = .entityTag("\"x\"")
        metadata.total = 100
        metadata.synchronized = 50
        metadata.boot = "now"
        let text = try metadata.text()
        #expect(DownloadMetadata(text: text) == metadata)
        for index in text.indices {
            var damaged = text
            damaged[index] ^= 1
            #expect(DownloadMetadata(text: damaged) == nil, "byte \(index)")
            #expect(DownloadMetadata(text: Array(text[..<index])) == nil)
        }
        #expect(metadata.trusted(of: 70, boot: "now") == 70)
        #expect(metadata.trusted(of: 70, boot: "later") == 50)
        #expect(metadata.trusted(of: 70, boot: nil) == 50)
        #expect(metadata.trusted(of: 20, boot: "later") == 20)
    }

    @Test(arguments: [
        ("attachment; filename=a.txt", "a.txt"), ("attachment; filename=\"a b.txt\"", "a b.txt"),
        ("attachment; FileName = \"a\\\"b\"", "a\"b"), ("inline;filename=a;filename*=UTF-8''%e2%82%ac.txt", "€.txt"),
        ("attachment; filename*=utf-8'en'x%20y; filename=z", "x y"), ("attachment; filename*=iso-8859-1''%e4", "ä"),
        ("attachment; filename*=koi8-r''%e4; filename=z", "z"), ("attachment; filename*=UTF-8''%ff; filename=z", "z"),
        ("attachment; filename*=UTF-8''%4; filename=z", "z"), ("attachment; filename=a b.txt", "a b.txt"),
        ("attachment; other=\"; filename=no\"; filename=yes", "yes"), ("filename=first", nil), ("attachment", nil),
        ("", nil), ("attachment; filename", nil), ("attachment; filename=\"unclosed", "unclosed"),
        ("attachment; filename=\"C:\\dir\\x\"", "C:\\dir\\x"),
    ])
    func `the file name is read from Content-Disposition`(field: String, name: String?) {
        #expect(ContentDisposition.fileName(in: field) == name)
    }

    @Test(arguments: [
        ("a.txt", "a.txt"), ("../../etc/passwd", "passwd"), ("/etc/passwd", "passwd"), ("..", ""), (".", ""),
        ("...", ""),
        ("", ""), ("a/", "a"), ("C:\\Windows\\x.dll", "x.dll"), (".bashrc", "bashrc"), ("~root", "root"),
        ("a\u{0}b", "b"),
        ("a\nb\r\t", "ab"), ("evil\u{202E}gpj.exe", "evilgpj.exe"), ("a:b*c?d", "abcd"), (" a ", "a"), ("a. .", "a"),
        ("日本.txt", "日本.txt"), (".. /.. /x", "x"), ("..\u{200B}", ""), ("\u{FEFF}.hidden", "hidden"),
    ])
    func `a file name is reduced to one safe path component`(given: String, name: String) {
        #expect(DownloadFileName.cleaned(given) == name)
    }

    @Test func `long file names keep their extension`() {
        let name = DownloadFileName.cleaned(String(repeating: "ä", count: 300) + ".tar.gz")
        #expect(name.hasSuffix(".gz"))
        #expect(name.utf8.count <= 200)
        #expect(DownloadFileName.cleaned(String(repeating: "x", count: 300)).utf8.count == 200)
        // A single character may consist of any number of code points.
        let towering = DownloadFileName.cleaned("a" + String(repeating: "\u{301}", count: 300) + ".txt")
        #expect(towering.unicodeScalars.first == "a" && towering.hasSuffix(".txt"))
        #expect(towering.utf8.count <= 200)
    }

    @Test func `no file name leads outside its directory`() throws {
        var generator = SeededGenerator(seed: 3)
        let pool = [
            "..", "/", "\\", ".", "\u{0}", "\u{202E}", "%2e%2e%2f", "~", " ", "a", "ä", "\"", ";", "=", "\n", "'",
        ]
        for _ in 0..<5000 {
            let text = (0..<Int.random(in: 0...12, using: &generator)).map { _ in
                pool.randomElement(using: &generator) ?? ""
            }.joined()
            let fields: HeaderFields = [
                "Content-Disposition": "attachment; filename=\"\(text)\"; filename*=UTF-8''\(text)"
            ]
            let name = DownloadFileName.name(for: try head(fields))
            #expect(!name.isEmpty && !name.hasPrefix(".") && !name.contains("/") && !name.contains("\u{0}"), "\(text)")
            #expect(URL(fileURLWithPath: "/folder").appendingPathComponent(name).standardized.path == "/folder/" + name)
        }
    }

    @Test(arguments: [
        ("http://h/a/b.txt?q=/x", "b.txt"), ("http://h/a%2Fb", "b"), ("http://h/..%2f..%2fx", "x"),
        ("http://h/", "download"),
        ("http://h", "download"), ("http://h/%00", "download"), ("http://h/a%20b", "a b"),
        ("http://h/x/..", "download"),
    ])
    func `without a file name in the headers, the name comes from the URL`(url: String, name: String) throws {
        let head = ResponseHead(url: try #require(URL(string: url)), status: 200)
        #expect(DownloadFileName.name(for: head) == name)
    }
}
