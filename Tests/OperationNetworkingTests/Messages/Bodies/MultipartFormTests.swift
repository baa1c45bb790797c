// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(Rounds.minutes)))
struct MultipartFormTests {
    @Test func `a form with all kinds of parts has exactly the expected bytes`() throws {
        let file = try TemporaryFile(Data("file's bytes".utf8))
        var form = MultipartForm(boundary: "b")
        form.add("title", "On the\nbeach")
        form.add("raw", Data([0, 255, 10]), fileName: "raw.BIN")
        form.add("photo", file: try FileRegion(file.url, offset: 7, length: 5), fileName: "a.jpeg")
        form.add("card", body: try .json(["a": 1]))
        form.add(
            .init(
                name: "stream", fileName: "s.txt", contentType: "text/x",
                body: .stream(length: 4, canBeSentAgain: true) { PieceProducer(Array("abcd".utf8), size: 3) }))
        form.add("empty", Data())
        form.add("none", body: .none)
        let expected =
            "--b\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nOn the\nbeach\r\n"
            + "--b\r\nContent-Disposition: form-data; name=\"raw\"; filename=\"raw.BIN\"\r\n"
            + "Content-Type: application/octet-stream\r\n\r\n\u{0}\u{FFFF}\n\r\n"
            + "--b\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"a.jpeg\"\r\n"
            + "Content-Type: image/jpeg\r\n\r\nbytes\r\n"
            + "--b\r\nContent-Disposition: form-data; name=\"card\"\r\nContent-Type: application/json\r\n\r\n{\"a\":1}\r\n"
            + "--b\r\nContent-Disposition: form-data; name=\"stream\"; filename=\"s.txt\"\r\n"
            + "Content-Type: text/x\r\n\r\nabcd\r\n"
            + "--b\r\nContent-Disposition: form-data; name=\"empty\"\r\n\r\n\r\n"
            + "--b\r\nContent-Disposition: form-data; name=\"none\"\r\n\r\n\r\n--b--\r\n"
        let bytes = Array(expected.utf8).replacing([0xEF, 0xBF, 0xBF], with: [255])
        let body = try RequestBody.multipart(form)
        #expect(body.length == Int64(bytes.count))
        #expect(body.canBeSentAgain)
        #expect(body.contentType == "multipart/form-data; boundary=b")
        for portion in [1, 2, 7, 64, 1 << 16] { #expect(try BodyBytes.all(of: body, portion: portion) == bytes) }
    }

    @Test func `a dictionary becomes a URL-encoded form, or a multipart form if a value is binary`() throws {
        #expect(try BodyBytes.text(of: .fields(["b": [1, 2], "a": "x y", "n": nil])) == "a=x+y&b%5B%5D=1&b%5B%5D=2")
        let file = try TemporaryFile(Data("bytes".utf8))
        let body = try RequestBody.fields([
            "d": Data([1]), "c": try FileRegion(file.url), "b": ["x": true], "a": "ä&", "n": nil,
            "e": try RequestBody.json(["k": 1]),
        ])
        let boundary = try #require(body.contentType?.components(separatedBy: "boundary=").last)
        let parts = try BodyBytes.text(of: body).components(separatedBy: "--\(boundary)\r\n").dropFirst()
        let type = "Content-Type: application/octet-stream"
        let expected: [[String]] = [
            ["name=\"a\"", "", "ä&", ""], ["name=\"b[x]\"", "", "true", ""],
            ["name=\"c\"; filename=\"\(file.url.lastPathComponent)\"", type, "", "bytes", ""],
            ["name=\"d\"; filename=\"d\"", type, "", "\u{1}", ""],
            ["name=\"e\"", "Content-Type: application/json", "", "{\"k\":1}", "--\(boundary)--", ""],
        ]
        let lines = parts.map { $0.components(separatedBy: "\r\n") }
        #expect(lines == expected.map { ["Content-Disposition: form-data; " + $0[0]] + $0.dropFirst() })
        #expect(throws: NetworkError.self) { try RequestBody.fields(["a": Thread.current, "d": Data()]) }
    }

    @Test func `each binary value of an array becomes its own part`() throws {
        let body = try RequestBody.fields([
            "p": [Data("1".utf8), Data("2".utf8)], "q": ["x", Data("y".utf8)] as [Any],
        ])
        let text = try BodyBytes.text(of: body)
        let names = text.components(separatedBy: "form-data; name=\"").dropFirst().map { $0.prefix { $0 != "\"" } }
        #expect(names == ["p[]", "p[]", "q[]", "q[]"])
        #expect(text.components(separatedBy: "filename=").count == 4)
    }

    @Test func `a form without parts contains only the closing boundary`() throws {
        #expect(try BodyBytes.text(of: .multipart(MultipartForm(boundary: "x y"))) == "--x y--\r\n")
        #expect(try RequestBody.multipart(MultipartForm(boundary: "x y")).contentType?.hasSuffix("=\"x y\"") == true)
    }

    @Test(arguments: [
        ("plain", "plain"), ("ä 日本", "ä 日本"), ("a\"b", "a%22b"), ("a\\b%22", "a\\b%22"), ("a\rb", "a%0D%0Ab"),
        ("a\nb", "a%0D%0Ab"), ("a\r\nb", "a%0D%0Ab"), ("\n\r", "%0D%0A%0D%0A"), ("\r", "%0D%0A"), ("", ""),
    ])
    func `names are escaped as in web browsers`(name: String, escaped: String) throws {
        var form = MultipartForm(boundary: "b")
        form.add(name, "")
        #expect(
            try BodyBytes.text(of: .multipart(form)).hasPrefix(
                "--b\r\nContent-Disposition: form-data; name=\"\(escaped)\"\r\n\r\n"))
    }

    @Test(arguments: [
        ("a\rb", "a%0Db"), ("a\nb", "a%0Ab"), ("\"\r\n", "%22%0D%0A"), ("x\"; name=\"y", "x%22; name=%22y"),
    ])
    func `line breaks in file names are escaped and kept`(name: String, escaped: String) throws {
        var form = MultipartForm(boundary: "b")
        form.add("n", Data(), fileName: name)
        #expect(try BodyBytes.text(of: .multipart(form)).contains("; filename=\"\(escaped)\"\r\n"))
    }

    @Test func `no name or file name can add a line, a header or a part`() throws {
        var generator = SeededGenerator(seed: 7)
        for round in 0..<500 {
            let hostile = ["\r\n", "\"", "--b", "\r\nX: y\r\n\r\n", "; filename=\"z\"", ""]
            func text() -> String {
                randomText(&generator) + (hostile.randomElement(using: &generator) ?? "") + randomText(&generator)
            }
            let (name, fileName) = (text(), text())
            var form = MultipartForm()
            form.add(name, Data("v".utf8), fileName: fileName, contentType: "text/x")
            let lines = try BodyBytes.all(of: .multipart(form)).split(
                separator: Array("\r\n".utf8), omittingEmptySubsequences: false)
            #expect(lines.count == 7, "round \(round)")
            #expect(!lines.contains { $0.contains(10) || $0.contains(13) }, "round \(round)")
            #expect(lines[1].count { $0 == UInt8(ascii: "\"") } == 4, "round \(round)")
        }
    }

    @Test func `generated boundaries are unique, and custom boundaries are validated`() throws {
        let boundaries = (0..<1000).map { _ in MultipartForm().boundary }
        #expect(Set(boundaries).count == 1000)
        #expect(boundaries.allSatisfy { $0.utf8.count <= 70 && $0.utf8.count >= 32 })
        for wrong in ["", " ", "a ", "a\r\nb", "ä", "a\"b", String(repeating: "x", count: 71)] {
            let error = #expect(throws: NetworkError.self) { try RequestBody.multipart(MultipartForm(boundary: wrong)) }
            #expect(error?.code == .bodyNotEncodable)
        }
    }

    @Test func `a content type with a line break is rejected`() {
        var form = MultipartForm()
        form.add("a", Data(), contentType: "text/plain\r\nX: y")
        #expect(throws: NetworkError.self) { try RequestBody.multipart(form) }
    }

    @Test func `impossible lengths are rejected, and unknown lengths stay unknown`() throws {
        func form(_ lengths: Int64?...) -> MultipartForm {
            var form = MultipartForm()
            for length in lengths {
                let body = RequestBody.stream(length: length, canBeSentAgain: false) { PieceProducer([], size: 1) }
                form.add("x", body: body)
            }
            return form
        }
        let overflow = #expect(throws: NetworkError.self) { try RequestBody.multipart(form(.max, .max)) }
        #expect(overflow?.code == .bodyLengthMismatch)
        #expect(throws: NetworkError.self) { try RequestBody.multipart(form(-1)) }
        #expect(try RequestBody.multipart(form(1, nil)).length == nil)
        #expect(try !RequestBody.multipart(form(1)).canBeSentAgain)
    }

    enum Change: CaseIterable { case shrunk, grown, rewritten, removed }

    @Test(arguments: Change.allCases)
    func `a file that changes before it is sent is an error`(change: Change) throws {
        let file = try TemporaryFile(Data(TestPattern.bytes(count: 100_000)))
        var form = MultipartForm()
        form.add("before", "text")
        form.add("file", file: try FileRegion(file.url))
        let body = try RequestBody.multipart(form)
        switch change {
        case .shrunk: try Data(TestPattern.bytes(count: 10)).write(to: file.url)
        case .grown: try Data(TestPattern.bytes(count: 200_000)).write(to: file.url)
        case .rewritten: try Data(TestPattern.bytes(from: 1, count: 100_000)).write(to: file.url)
        case .removed: try FileManager.default.removeItem(at: file.url)
        }
        let error = #expect(throws: NetworkError.self) { try BodyBytes.all(of: body) }
        #expect(error?.code == (change == .removed ? .bodyUnreadable : .bodyChanged))
    }

    @Test func `a file that shrinks while it is sent is an error`() throws {
        // The file is much longer than the portion that is read ahead.
        let file = try TemporaryFile(Data(TestPattern.bytes(count: 1_000_000)))
        var form = MultipartForm()
        form.add("file", file: try FileRegion(file.url))
        let reader = try BodyReader(.multipart(form), waker: BodyWaker {})
        var buffer = [UInt8](repeating: 0, count: 50_000)
        _ = try buffer.withUnsafeMutableBytes { buffer in try reader.read(into: buffer) }
        let handle = try FileHandle(forWritingTo: file.url)
        try handle.truncate(atOffset: 60_000)
        try handle.close()
        let error = #expect(throws: NetworkError.self) {
            while try buffer.withUnsafeMutableBytes({ buffer in try reader.read(into: buffer) }) != .end {}
        }
        #expect(error?.code == .bodyChanged)
    }

    @Test(arguments: SessionKind.allCases)
    func `forms arrive complete, with their length, and again after a redirect`(kind: SessionKind) async throws {
        let bench = try Bench(kind)
        defer { bench.closeSession() }
        let file = try TemporaryFile(Data(TestPattern.bytes(count: 700_000)))
        var form = MultipartForm()
        form.add("name", "value")
        form.add("file", file: try FileRegion(file.url), fileName: "pattern.png")
        let late = RequestBody.stream(length: 5000, canBeSentAgain: true) {
            PieceProducer(TestPattern.bytes(count: 5000), size: 999, isLate: true)
        }
        form.add("late", body: late)
        let body = try RequestBody.multipart(form)
        let expected = try await TestThread.run { try BodyBytes.all(of: body) }
        bench.server.route("POST", "/first") { _ in .redirect(to: "/second", status: 307) }
        bench.server.route("POST", "/second") { _ in .text("done") }
        let session = ExchangeSession(over: bench.session)
        let receiver = RecordingReceiver()
        let task = session.makeTask(with: try bench.request("POST", "/first", body: body), receiver: receiver)
        task.resume()
        let record = await receiver.end()
        #expect(record.text == "done", "\(String(describing: record.error))")
        let requests = bench.server.requests
        #expect(requests.map(\.path) == ["/first", "/second"])
        for request in requests {
            #expect(request.body == expected)
            #expect(request["Content-Length"] == "\(expected.count)")
            #expect(request["Content-Type"] == "multipart/form-data; boundary=\(form.boundary)")
            #expect(request.values("Content-Type").count == 1)
        }
        #expect(bench.server.violations == [])
    }

    @Test(arguments: SessionKind.allCases)
    func `a form with a stream of unknown length is sent in chunks, and only once`(kind: SessionKind) async throws {
        let bench = try Bench(kind)
        defer { bench.closeSession() }
        bench.server.route("POST", "/") { _ in .text("done") }
        var form = MultipartForm(boundary: "b")
        form.add("s", body: .stream(InputStream(data: Data(TestPattern.bytes(count: 300_000)))))
        let body = try RequestBody.multipart(form)
        #expect(!body.canBeSentAgain)
        let record = await bench.run(try bench.request("POST", "/", body: body))
        #expect(record.text == "done")
        let request = try #require(bench.server.requests.first)
        #expect(request["Transfer-Encoding"] == "chunked")
        #expect(
            request.bodyCount == 300_000
                + "--b\r\nContent-Disposition: form-data; name=\"s\"\r\n\r\n\r\n--b--\r\n".utf8.count)
        let again = await bench.run(try bench.request("POST", "/", body: body))
        #expect(again.error?.code == .bodyNotRepeatable)
        #expect(bench.server.violations.isEmpty || bench.server.requests.count(where: \.isComplete) == 1)
    }

    @Test func `a multipart form of one gibibyte needs little memory`() async throws {
        guard Rounds.isSoak else { return }
        let bench = try Bench(try #require(SessionKind.allCases.first))
        defer { bench.closeSession() }
        bench.server.route("POST", "/") { _ in .text("done") }
        let block = Data(TestPattern.bytes(count: 64 << 20))
        let file = try TemporaryFile(block)
        var form = MultipartForm()
        for index in 0..<16 { form.add("file\(index)", file: try FileRegion(file.url)) }
        let request = try bench.request("POST", "/", body: try .multipart(form)) { $0.timeouts.idle = .seconds(60) }
        try ResidentMemory.forgetPeak()
        let before = ResidentMemory.bytes
        let record = await bench.run(request)
        let growth = max(ResidentMemory.peak, ResidentMemory.bytes) - before
        #expect(record.text == "done")
        print("soak: a multipart form of 1 GiB from files grew the process by \(growth >> 10) KiB")
        // A sanitizer keeps memory that was freed.
        #if !TSAN && !ASAN
            #expect(growth < 16 << 20)
        #endif
    }
}
