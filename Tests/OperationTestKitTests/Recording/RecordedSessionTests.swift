// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Recorded sessions", .timeLimit(.minutes(3)))
struct RecordedSessionTests {
    private let server: LoopbackServer

    private struct Song: Codable, Sendable, Equatable { var title: String }

    init() throws {
        server = try LoopbackServer()
        server.route("GET", "/songs") { request in
            .json(#"[{"title":"page \#(request.query ?? "")"}]"#)
        }
        server.route("POST", "/session") { _ in
            .json(#"{"access_token" : "t0ps3cret","expires": 3600.50, "next":"/a?page=2&token=abc"}"#)
                .with("Set-Cookie", "sid=c00kie; Path=/")
        }
        server.route("POST", "/songs") { .json($0.text, status: 201) }
        server.route("GET", "/file") { _ in .repeating(Array("abcdefgh".utf8), count: 200_000) }
        server.route("GET", "/picture") { _ in .bytes([0xFF, 0xD8, 0, 1, 2]).with("Content-Type", "image/jpeg") }
        server.route("GET", "/cut") { _ in .repeating([65], count: 1_000).cut(at: 400) }
        server.route("GET", "/missing") { _ in .text("none", status: 404) }
        server.route("PUT", "/stream") { .json("{\"count\":\($0.bodyCount)}") }
    }

    private func base(_ session: any NetworkSession) -> NetworkBase {
        var base = NetworkBase(server.url("/"))
        base.session = session
        base.headers = ["Authorization": "Bearer t0ps3cret"]
        return base
    }

    private func recorder(limit: Int = 4 << 20) -> RecordingSession {
        RecordingSession(over: DefaultNetworkSession.standard, bodyLimit: limit)
    }

    /// The requests of a client, which are recorded once and can be played many times.
    private func course(_ base: NetworkBase) async throws -> [String] {
        struct Session: Decodable, Sendable { let access_token: String }
        var seen: [String] = []
        let session: Session = try await base.send(["user": "ada", "password": "hunter2"], to: "session").run()
        seen.append(session.access_token.isEmpty ? "no token" : "a token")
        for page in 1...2 {
            let songs: [Song] = try await base.get("songs", ["page": page]).run()
            seen.append(songs[0].title)
        }
        let added: Song = try await base.send(Song(title: "new"), to: "songs").run()
        seen.append(added.title)
        seen.append("\(await base.get("missing", as: [Song].self).startedOutcome.error?.status ?? 0)")
        seen.append("\(await base.get("cut", as: [Song].self).startedOutcome.error?.code.description ?? "")")
        return seen
    }

    @Test func `a sequence of requests is played as recorded, without secrets and without a network`() async throws {
        let recorder = recorder()
        let live = try await course(base(recorder))
        #expect(live == ["a token", "page page=1", "page page=2", "new", "404", "truncatedBody"])
        let recording = recorder.recording
        #expect(recording.exchanges.count == 6)
        let written = try SessionRecording(try recording.data())
        #expect(written.exchanges.map(\.response) == recording.exchanges.map(\.response))
        let text = String(decoding: try recording.data(), as: UTF8.self)
        for secret in ["t0ps3cret", "hunter2", "c00kie", "token=abc"] { #expect(!text.contains(secret), "\(secret)") }
        // Values that are not secret are recorded unchanged.
        #expect(text.contains(#"\"expires\": 3600.50"#) && text.contains("/a?page=2&token=***"))
        #expect(text.contains("sid=***; Path=/"))
        await server.stopped()

        for _ in 0..<2 {
            let player = PlaybackSession(try SessionRecording(try recording.data()))
            #expect(try await course(base(player)) == live)
            try player.expectAllUsed()
        }
    }

    @Test func `redacting JSON keeps its structure`() async throws {
        let end = #""pin":null,"shown":[1,{"key":"k"}]}"#
        let text = #"{"code":-17.5e3,"session":{"id":"a\"b","list":[1,"x",true,null]},"# + end
        server.route("GET", "/shape") { _ in .json(text) }
        let recorder = recorder()
        let shape = NetworkDataOperation(url: server.url("/shape"), urlSession: recorder) { data, _ in data.count }
        #expect(try await shape.run() == text.utf8.count)
        let hidden = #"{"code":0,"session":{"id":"***","list":[0,"***",true,null]},"#
        let masked = hidden + end.replacing("\"k\"", with: "\"***\"")
        let exchange = try #require(recorder.recording.exchanges.first)
        #expect(exchange.responseBody.text == masked)
        #expect(exchange.response?.headers["Content-Length"] == "\(masked.utf8.count)")
    }

    @Test func `files and bodies of every kind are compared and played`() async throws {
        let recorder = recorder()
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("recorded-\(UUID())")
        defer { try? FileManager.default.removeItem(at: folder) }
        let url = server.url("/stream")
        let text = Data("a stream of text\n".utf8)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let file = folder.appendingPathComponent("sent.txt")
        try text.write(to: file)
        let region = try FileRegion(file)

        func course(_ session: any NetworkSession, _ round: Int) async throws -> [String] {
            var form = MultipartForm()
            form.add("title", "t")
            form.add("password", "hunter2")
            form.add("cover", text, fileName: "cover.txt")
            let bodies: [RequestBody] = [
                .data(text), .file(region), .stream(InputStream(data: text)), try .multipart(form),
            ]
            var seen: [String] = []
            for body in bodies {
                let upload = NetworkUploadOperation(url: url, method: "PUT", body: body, urlSession: session) {
                    data, _ in
                    String(decoding: data, as: UTF8.self)
                }
                seen.append(try await upload.run())
            }
            let place = folder.appendingPathComponent("file-\(round)")
            let download = NetworkDownloadOperation<URL>(url: server.url("/file"), urlSession: session) { file, _ in
                file
            }
            download.destination = .file(place)
            _ = try await download.run()
            seen.append("\(try Data(contentsOf: place).count) \(download.downloadProgress.completedBytes)")
            let picture = NetworkDataOperation(url: server.url("/picture"), urlSession: session) { data, _ in data }
            seen.append("\(Array(try await picture.run()))")
            return seen
        }

        let live = try await course(recorder, 0)
        #expect(live.count == 6 && live[4] == "200000 200000")
        let data = try recorder.recording.data()
        #expect(!String(decoding: data, as: UTF8.self).contains("hunter2"))
        await server.stopped()
        let player = PlaybackSession(try SessionRecording(data))
        #expect(try await course(player, 1) == live)
        try player.expectAllUsed()
    }

    @Test func `a request that was not recorded fails and names the nearest recorded request`() async throws {
        let recorder = recorder()
        let _: [Song] = try await base(recorder).get("songs", ["page": 1, "api_key": "s3cret"]).run()
        let player = PlaybackSession(recorder.recording)
        let stranger = base(player).get("songs", ["page": 3, "api_key": "s3cret"], as: [Song].self)
        stranger.start()
        let error = try await stranger.expectFailure(.notRecorded)
        #expect(error.message.contains("/songs?api_key=***&page=3 is not recorded in the recording."))
        #expect(error.message.contains("The most similar one is exchange 1, GET"))
        #expect(error.message.contains("differs in: query."))
        #expect(error.message.contains("To record again") && !error.message.contains("s3cret"))
        #expect(player.unmatchedRequests.count == 1 && player.unusedExchanges.count == 1)
        let unmet = #expect(throws: UnmetExpectation.self) { try player.expectAllUsed() }
        #expect(unmet?.details.count == 2)
        // The secret can differ. A request that is sent more often than it was recorded also fails.
        let _: [Song] = try await base(player).get("songs", ["page": 1, "api_key": "other"]).run()
        let again = base(player).get("songs", ["page": 1, "api_key": "other"], as: [Song].self)
        again.start()
        #expect(try await again.expectFailure(.notRecorded).message.contains("was requested more often"))
    }

    @Test func `a URL without a path matches the same URL with the root path`() async throws {
        let bare = try #require(URL(string: "http://example.com?x=1"))
        let full = try #require(URL(string: "http://example.com/?x=1"))
        for (recorded, requested) in [(bare, full), (full, bare)] {
            let head = ResponseHead(url: recorded, status: 200)
            let player = PlaybackSession(
                SessionRecording([RecordedExchange(url: recorded.absoluteString, response: head)]))
            let operation = NetworkDataOperation(url: requested, urlSession: player) { data, _ in data.count }
            #expect(try await operation.run() == 0)
        }
    }

    @Test func `playback rules exclude parts of a request from the comparison`() async throws {
        let recorder = recorder()
        let _: [Song] = try await base(recorder).get("songs", ["page": 1, "time": 100]).run()
        let _: Song = try await base(recorder).send(Song(title: "one"), to: "songs").run()
        var rules = PlaybackRules()
        rules.comparesHost = false
        rules.ignoredQueryNames = ["time"]
        rules.comparesBody = false
        let player = PlaybackSession(recorder.recording, rules: rules)
        var elsewhere = base(player)
        elsewhere.url = try #require(URL(string: "http://127.0.0.1:9/"))
        let songs: [Song] = try await elsewhere.get("songs", ["page": 1, "time": 200]).run()
        #expect(songs[0].title == "page page=1&time=100")
        let added: Song = try await elsewhere.send(Song(title: "another"), to: "songs").run()
        #expect(added.title == "one")
        try player.expectAllUsed()
    }

    @Test func `bodies over the limit are compared by checksum and cannot be played`() async throws {
        let recorder = recorder(limit: 1_000)
        let long = Data(repeating: 7, count: 5_000)
        func put(_ session: any NetworkSession, _ body: Data) -> NetworkUploadOperation<Int> {
            NetworkUploadOperation(url: server.url("/stream"), method: "PUT", body: .data(body), urlSession: session) {
                data, _ in data.count
            }
        }
        _ = try await put(recorder, long).run()
        let file = NetworkDataOperation(url: server.url("/file"), urlSession: recorder) { data, _ in data.count }
        #expect(try await file.run() == 200_000)
        let recording = recorder.recording
        #expect(recording.exchanges.map(\.requestBody.count) == [5_000, 0])
        #expect(recording.exchanges[1].responseBody.data == nil)
        // The file contains the limit.
        let player = PlaybackSession(try SessionRecording(try recording.data()))
        #expect(player.recording.bodyLimit == 1_000)
        let other = put(player, Data(repeating: 8, count: 5_000))
        other.start()
        try await other.expectFailure(.notRecorded)
        _ = try await put(player, long).run()
        let played = NetworkDataOperation(url: server.url("/file"), urlSession: player) { data, _ in data.count }
        played.start()
        #expect(try await played.expectFailure(.notRecorded).message.contains("Record it with a larger bodyLimit."))
    }

    @Test func `playback of a canceled request stops at the recorded point`() async throws {
        let gate = Gate()
        server.route("GET", "/slow") { _ in
            LoopbackAnswer(.head(200, ["Content-Length": "10"]), .send("01234"), .stall(until: gate), .send("56789"))
        }
        func course(_ session: any NetworkSession) async throws {
            let arrived = Gate()
            let operation = NetworkDataOperation(url: server.url("/slow"), urlSession: session) { data, _ in data.count
            }
            operation.progressPacing = ProgressPacing(smallestStep: 1)
            operation.callbackQueue = DispatchQueue(label: "test")
            operation.downloadProgressHandler = { if $0.completedBytes == 5 { arrived.open() } }
            operation.start()
            await arrived.passage()
            operation.cancel()
            try await operation.expectCancelled(.requested)
        }
        let recorder = recorder()
        try await course(recorder)
        gate.open()
        // The task reports its end after the end of the operation.
        await recorder.settled()
        #expect(recorder.recording.exchanges.map(\.end) == [.cancelled])
        try await course(PlaybackSession(recorder.recording))
    }

    @Test func `a request that its receiver withdrew is not recorded`() async throws {
        let recorder = recorder()
        let request = try NetworkRequest(url: server.url("/songs"))
        recorder.makeTask(with: request, receiver: WithdrawingReceiver()).resume()
        await recorder.settled()
        let songs: [Song] = try await base(recorder).get("songs").run()
        try #require(recorder.recording.exchanges.map { $0.response?.status } == [200])
        let player = PlaybackSession(recorder.recording)
        let played: [Song] = try await base(player).get("songs").run()
        #expect(played == songs)
        try player.expectAllUsed()
    }

    @Test func `loading an invalid recording throws an error that explains the problem`() throws {
        func error(_ text: String) -> SessionRecordingError? {
            #expect(throws: SessionRecordingError.self) { try SessionRecording(Data(text.utf8)) }
        }
        #expect(error("")?.code == .notARecording)
        #expect(error("[]")?.code == .notARecording)
        #expect(error(#"{"format":"other","version":1}"#)?.code == .notARecording)
        let newer = error(#"{"format":"OperationKit session recording","version":2}"#)
        #expect(newer?.code == .otherVersion && newer?.description.contains("Record it again") == true)
        let start = #"{"format":"OperationKit session recording","version":1,"redaction":{"secrets":true,"names":[]},"#
        let incomplete = error(start + #""exchanges":[{"request":{"url":"/"}}]}"#)
        #expect(incomplete?.detail == "the key method is missing at .exchanges[0].request")
        let request = #""exchanges":[{"request":{"method":"GET","url":"http://a/"},"response":{"status":200,"#
        #expect(error(start + request + #""body":{"base64":"?"}}}]}"#)?.detail == "a body is not valid base64")
        #expect(error(start + request + #""body":{"base64":"?"}}}]}"#)?.file == "the recording")
        let flawed = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID())")
        defer { try? FileManager.default.removeItem(at: flawed) }
        try Data((start + request + #""body":{"base64":"?"}}}]}"#).utf8).write(to: flawed)
        let named = #expect(throws: SessionRecordingError.self) { try SessionRecording(contentsOf: flawed) }
        #expect(named?.file == flawed.path && named?.detail == "a body is not valid base64")
        let missing = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID())")
        let unreadable = #expect(throws: SessionRecordingError.self) { try SessionRecording(contentsOf: missing) }
        #expect(unreadable?.code == .unreadable)
    }

    @Test func `without redaction, all values are recorded and the file records that`() async throws {
        let recorder = RecordingSession(over: DefaultNetworkSession.standard, redaction: .none)
        _ = try await base(recorder).send(["password": "hunter2"], to: "session", as: NoContent.self).run()
        let recording = try SessionRecording(try recorder.recording.data())
        #expect(recording.redaction.keepsSecrets)
        #expect(recording.exchanges[0].requestBody.text?.contains("hunter2") == true)
        #expect(recording.exchanges[0].requestHeaders["Authorization"] == "Bearer t0ps3cret")
    }
}

/// A receiver that withdraws its request when the session could send it.
private final class WithdrawingReceiver: NetworkReceiver {
    func task(_ task: any NetworkTask, didReceive head: ResponseHead) {}
    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {}
    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {}
    func taskMaySend(_ task: any NetworkTask) -> Bool { false }
}

extension TypedOperation {
    /// Starts the operation and returns its outcome.
    fileprivate var startedOutcome: OperationOutcome<ResultType, ErrorType> {
        get async {
            start()
            return await finalOutcome
        }
    }
}
