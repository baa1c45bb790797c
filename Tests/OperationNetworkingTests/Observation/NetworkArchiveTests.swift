// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationExporters
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Network archives (HAR)", .timeLimit(.minutes(3)))
struct NetworkArchiveTests {
    /// A part of an archive, accessed by name as by a reader that does not know the types of the library.
    private struct Part {
        let value: Any

        subscript(name: String) -> Part {
            get throws { Part(value: try #require((value as? [String: Any])?[name], "\(name) is missing")) }
        }

        var list: [Part] { get throws { try #require(value as? [Any]).map(Part.init) } }
        var text: String { get throws { try #require(value as? String) } }
        var number: Double { get throws { try #require(value as? NSNumber).doubleValue } }
        func has(_ name: String) -> Bool { (value as? [String: Any])?[name] != nil }
    }

    /// Checks everything that the format requires, and returns the entries.
    private func entries(_ archive: NetworkArchive) throws -> [Part] {
        let log = try Part(value: JSONSerialization.jsonObject(with: archive.har()))["log"]
        #expect(try log["version"].text == "1.2" && !log["creator"]["name"].text.isEmpty)
        _ = try (log["creator"]["version"].text, log["pages"].list)
        let entries = try log["entries"].list
        let starts = try entries.map { try $0["startedDateTime"].text }
        #expect(starts == starts.sorted())
        for entry in entries { try check(entry) }
        return entries
    }

    private func check(_ entry: Part) throws {
        let date = try entry["startedDateTime"].text
        #expect(try Date(date, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true)) > .distantPast)
        let timings = try entry["timings"]
        var sum = 0.0
        for name in ["blocked", "dns", "connect", "send", "wait", "receive"] {
            let time = try timings[name].number
            #expect(time == -1 || time >= 0, "\(name)")
            if ["send", "wait", "receive"].contains(name) { #expect(time >= 0) }
            sum += max(time, 0)
        }
        #expect(try timings["ssl"].number <= max(timings["connect"].number, -1))
        #expect(try abs(entry["time"].number - sum) < 1e-6)
        _ = try entry["cache"]
        for side in [try entry["request"], try entry["response"]] {
            _ = try (side["httpVersion"].text, side["headersSize"].number, side["bodySize"].number)
            for list in [try side["headers"].list, try side["cookies"].list] {
                for pair in list { _ = try (pair["name"].text, pair["value"].text) }
            }
        }
        _ = try (entry["request"]["method"].text, entry["request"]["url"].text)
        for pair in try entry["request"]["queryString"].list { _ = try (pair["name"].text, pair["value"].text) }
        if try entry["request"].has("postData") {
            let data = try entry["request"]["postData"]
            _ = try data["mimeType"].text
            // The two exclude each other.
            #expect(data.has("text") != data.has("params"))
        }
        _ = try (entry["response"]["status"].number, entry["response"]["statusText"].text)
        _ = try (entry["response"]["redirectURL"].text, entry["response"]["content"]["size"].number)
        _ = try entry["response"]["content"]["mimeType"].text
    }

    private func session(_ bench: OperationBench) -> ExchangeSession {
        ExchangeSession.over(bench.session.transport) { $0.cookies = CookieJar() }
    }

    private func send(
        _ bench: OperationBench, _ session: ExchangeSession, _ archive: NetworkArchive, method: String = "GET",
        _ target: String, _ headers: HeaderFields = [:], body: RequestBody = .none
    ) async throws {
        let request = try NetworkRequest(method, url: bench.server.url(target), headers: headers, body: body)
        let log = EventLog()
        let operation = NetworkDataOperation(request: request, urlSession: session) { data, _ in data.count }
        operation.callbackQueue = bench.callbacks
        operation.addNetworkObserver(archive)
        operation.addNetworkObserver(log)
        _ = try? await operation.run()
        await log.ended()
    }

    @Test func `each request and each redirect is a complete entry without secrets`() async throws {
        let bench = try OperationBench(), archive = NetworkArchive()
        let session = session(bench)
        bench.server.route("POST", "/a") { _ in
            .redirect(to: "/b?code=S3CRET", status: 307).with("Set-Cookie", "sid=S3CRET; Path=/; HttpOnly; Max-Age=60")
        }
        bench.server.route("POST", "/b") { _ in .json(#"{"token":"S3CRET"}"#) }
        try await send(
            bench, session, archive, method: "POST", "/a?q=S3CRET&S3CRET", ["Authorization": "Bearer S3CRET"],
            body: .data(Data(#"{"password":"S3CRET"}"#.utf8)).withContentType("application/json"))
        let text = String(decoding: try archive.har(), as: UTF8.self)
        #expect(!text.contains("S3CRET"), "\(text)")
        let entries = try entries(archive)
        #expect(try entries.map { try $0["response"]["status"].number } == [307, 200])
        #expect(try entries[0]["response"]["redirectURL"].text.hasSuffix("/b?***"))
        #expect(try entries[0]["request"]["queryString"].list.map { try $0["name"].text } == ["q", "***"])
        #expect(try entries[0]["request"]["bodySize"].number == 21)
        let cookie = try #require(try entries[0]["response"]["cookies"].list.first)
        #expect(try cookie["name"].text == "sid" && cookie["value"].text == "***" && cookie["path"].text == "/")
        #expect(try (cookie["httpOnly"].value as? Bool) == true && cookie["expires"].text.hasSuffix("Z"))
        #expect(try entries[1]["request"]["cookies"].list.map { try $0["name"].text } == ["sid"])
        #expect(try entries[1]["serverIPAddress"].text == "127.0.0.1")
        #expect(try entries[1]["comment"].text.contains("attempt 1, request 2"))
        #expect(try entries[1]["response"]["content"]["size"].number == 18)
        #expect(try !entries[1]["response"]["content"].has("text"))
        #expect(try entries.allSatisfy { try $0["time"].number > 0 })
    }

    @Test func `bodies are kept on request, as text or in base64`() async throws {
        var options = NetworkArchive.Options()
        options.keepsBodies = true
        options.redaction = .none
        options.bodyBytes = 300
        let bench = try OperationBench(), archive = NetworkArchive(options)
        let bytes = (0...255).map { UInt8($0) }
        bench.server.route("PUT", "/text") { _ in .text("\u{FEFF}é\"\n") }
        bench.server.route("PUT", "/bytes") { _ in .bytes(bytes) }
        bench.server.route("PUT", "/long") { _ in .text(String(repeating: "a", count: 1_000)) }
        bench.server.route("PUT", "/refused") { _ in .text("no", status: 403) }
        for target in ["/text?a=b+c%20d&e", "/bytes", "/long", "/refused"] {
            try await send(bench, bench.session, archive, method: "PUT", target, body: .data(Data(bytes)))
        }
        let entries = try entries(archive)
        let contents = try entries.map { try $0["response"]["content"] }
        #expect(try contents[0]["text"].text.hasSuffix("é\"\n") && !contents[0].has("encoding"))
        // The reader of these entries might drop the byte order mark.
        #expect(try archive.har().range(of: Data("\u{FEFF}é".utf8)) != nil)
        #expect(try contents[1]["encoding"].text == "base64")
        #expect(try Data(base64Encoded: contents[1]["text"].text) == Data(bytes))
        #expect(try contents[2]["text"].text.count == 300 && contents[2]["comment"].text.contains("1000"))
        #expect(try contents[3]["text"].text == "no")
        try await send(
            bench, bench.session, archive, method: "PUT", "/refused", body: .data(Data(bytes + bytes)))
        let cut = try #require(try self.entries(archive).last)["request"]["postData"]["comment"].text
        #expect(cut == "in base64, the first 300 of 512 bytes")
        let post = try entries[0]["request"]["postData"]
        #expect(try Data(base64Encoded: post["text"].text) == Data(bytes) && post["comment"].text == "in base64")
        let query = try entries[0]["request"]["queryString"].list
        #expect(try query.map { try $0["value"].text } == ["b c d", ""])
    }

    @Test func `with redaction, only JSON bodies are kept, without their secrets`() async throws {
        let options = with(NetworkArchive.Options()) { $0.keepsBodies = true }
        let bench = try OperationBench(), archive = NetworkArchive(options)
        bench.server.route("/json") { _ in
            .json(#"{"password":"S3CRET","name":"anna","inner":"{\"token\":\"S3CRET\",\"a\":1}","cut":"{\"S3CRET"}"#)
                .with("Set-Cookie", "a=1; Path=/, b=S3CRET")
        }
        bench.server.route("/huge") { _ in .json(#"{"number":1e999}"#) }
        bench.server.route("/text") { _ in .text("S3CRET") }
        for target in ["/json", "/text", "/huge"] {
            try await send(
                bench, bench.session, archive, method: "PUT", target,
                body: .data(Data(target == "/json" ? #"{"pin":"S3CRET"}"#.utf8 : "S3CRET".utf8)))
        }
        let entries = try entries(archive)
        #expect(
            try entries[0]["response"]["content"]["text"].text
                == #"{"cut":"***","inner":"{\"a\":1,\"token\":\"***\"}","name":"anna","password":"***"}"#)
        #expect(try entries[1]["response"]["content"]["comment"].text.contains("secret"))
        #expect(!String(decoding: try archive.har(), as: UTF8.self).contains("S3CRET"))
    }

    @Test func `failed and canceled requests are in the archive, with the reason`() async throws {
        let bench = try OperationBench(), archive = NetworkArchive()
        bench.server.route("GET", "/lost") { _ in .text("Hello").cut(at: 0, by: .reset) }
        bench.server.route("GET", "/slow") { _ in .silence }
        try await send(bench, bench.session, archive, "/lost")
        let log = EventLog(), slow = bench.text("/slow")
        slow.addNetworkObserver(archive)
        slow.addNetworkObserver(log)
        slow.start()
        _ = await bench.server.counts { $0.heads >= 2 }
        slow.cancel()
        await log.ended()
        let entries = try entries(archive)
        #expect(try entries.map { try $0["response"]["status"].number } == [0, 0])
        #expect(try entries[0]["response"]["_error"].text.contains("connectionLost"))
        #expect(try entries[1]["response"]["_error"].text == "canceled")
    }

    @Test func `a body over the total limit displaces no other body, and a truncated body is marked`() async throws {
        var options = NetworkArchive.Options()
        (options.keepsBodies, options.redaction) = (true, .none)
        (options.bodyBytes, options.totalBodyBytes) = (100_000, 2_000)
        let bench = try OperationBench(), archive = NetworkArchive(options)
        bench.server.route("PUT", "/small") { _ in .text("small") }
        bench.server.route("PUT", "/large") { _ in .text(String(repeating: "a", count: 3_000)) }
        bench.server.route("PUT", "/page") { _ in .text(String(repeating: "e", count: 50_000), status: 500) }
        for target in ["/small", "/large", "/small"] {
            try await send(bench, bench.session, archive, method: "PUT", target)
        }
        let entries = try entries(archive)
        let contents = try entries.map { try $0["response"]["content"] }
        try #require(contents.count == 3)
        #expect(archive.forgottenCount == 0)
        #expect(try contents[0]["text"].text == "small" && contents[2]["text"].text == "small")
        #expect(try !contents[1].has("text") && contents[1]["size"].number == 3_000)
        #expect(try contents[1]["comment"].text.contains("left out"))
        options.totalBodyBytes = 1 << 20
        let other = NetworkArchive(options)
        try await send(bench, bench.session, other, method: "PUT", "/page")
        let page = try #require(try self.entries(other).first)["response"]["content"]
        let count = try page["text"].text.count
        #expect(try count < 50_000 && page["comment"].text == "the first \(count) of 50000 bytes")
    }

    @Test(arguments: [.nan, .infinity, 1e300, -1e12] as [Double])
    func `an event whose date has no text gets an entry at the beginning of 1970`(seconds: Double) throws {
        let archive = NetworkArchive()
        archive.observe(NetworkEvent(.sending, date: Date(timeIntervalSince1970: seconds)))
        archive.observe(NetworkEvent(.attemptEnded))
        #expect(try entries(archive).map { try $0["startedDateTime"].text.prefix(10) } == ["1970-01-01"])
    }

    @Test func `a form is stored as its parameters, without a text`() async throws {
        for redaction in [LogRedaction.secrets, .none] {
            var options = NetworkArchive.Options()
            (options.keepsBodies, options.redaction) = (true, redaction)
            let bench = try OperationBench(), archive = NetworkArchive(options)
            bench.server.route("POST", "/") { _ in .text("done") }
            let form = RequestBody.data(Data("user=anna+b%26c&password=S3CRET&S3CRET&e=".utf8)).withContentType(
                "application/x-www-form-urlencoded; charset=utf-8")
            try await send(bench, bench.session, archive, method: "POST", "/", body: form)
            let data = try #require(try entries(archive).first)["request"]["postData"]
            #expect(!data.has("text"))
            let fields = try data["params"].list.map { try [$0["name"].text, $0["value"].text] }
            let (secret, part) = redaction == .none ? ("S3CRET", "S3CRET") : ("***", "***")
            #expect(fields == [["user", "anna b&c"], ["password", secret], [part, ""], ["e", ""]])
        }
    }

    @Test func `a session that reports only responses has entries too, and the limits are respected`() async throws {
        var options = NetworkArchive.Options()
        (options.limit, options.keepsBodies, options.totalBodyBytes) = (3, true, 40)
        options.redaction = .none
        let archive = NetworkArchive(options), stub = StubSession(), log = EventLog()
        stub.route("GET", "/*") { _ in .text("0123456789ABCDE") }
        for number in 1...5 {
            let url = try #require(URL(string: "http://stub.example/\(number)"))
            let operation = NetworkDataOperation(url: url, urlSession: stub) { data, _ in data.count }
            operation.callbackQueue = DispatchQueue(label: "bounds")
            operation.addNetworkObserver(archive)
            operation.addNetworkObserver(log)
            #expect(try await operation.run() == 15)
            await log.ended(number)
        }
        let entries = try entries(archive)
        #expect(try entries.map { try $0["request"]["url"].text.last } == ["4", "5"])
        #expect(archive.count == 2 && archive.forgottenCount == 3)
    }

    /// For manual inspection.
    ///
    /// With `OPERATIONKIT_SAMPLES=folder`, this writes the files that the other tests only check.
    @Test(.enabled(if: ProcessInfo.processInfo.environment["OPERATIONKIT_SAMPLES"] != nil))
    func `a sample archive, exposition and trace`() async throws {
        let folder = URL(fileURLWithPath: ProcessInfo.processInfo.environment["OPERATIONKIT_SAMPLES"] ?? ".")
        let options = with(NetworkArchive.Options()) { $0.keepsBodies = true }
        let bench = try OperationBench(), archive = NetworkArchive(options), meter = NetworkMeter(),
            trace = NetworkTrace()
        let log = EventLog()
        bench.server.route("GET", "/a") { _ in .redirect(to: "/b").with("Set-Cookie", "a=b; Path=/") }
        bench.server.route("GET", "/b") { $0.number % 3 == 1 ? .status(503) : .json(#"{"a":[1,2]}"#) }
        bench.server.route("PUT", "/c") { _ in .bytes([0, 1, 2, 255]).after(.milliseconds(3)) }
        let queue = QueueManager("sample \"queue\"", width: 2)
        queue.recording = QueueRecording()
        meter.watch(queue)
        for number in 0..<6 {
            let operation =
                number % 2 == 0
                ? NetworkUploadOperation(
                    url: bench.server.url("/a?x=1&y"), method: "GET", body: .none, urlSession: bench.session
                ) { data, _ in data.count }
                : NetworkUploadOperation(
                    url: bench.server.url("/c"), method: "PUT", body: .data(Data("hello".utf8)),
                    urlSession: bench.session
                ) { data, _ in data.count }
            operation.retry = Retry(backoff: .constant(.milliseconds(4)), throttledBackoff: .constant(.milliseconds(4)))
            for observer in [archive, meter, trace, log] as [any NetworkObserver] {
                operation.addNetworkObserver(observer)
            }
            operation.callbackQueue = bench.callbacks
            try queue.add(operation)
        }
        await queue.drained()
        await log.ended(6)
        try archive.har().write(to: folder.appendingPathComponent("sample.har"))
        try Data(meter.text.utf8).write(to: folder.appendingPathComponent("sample.prom"))
        try trace.chromeTrace(with: queue.record).write(to: folder.appendingPathComponent("sample.trace.json"))
    }
}
