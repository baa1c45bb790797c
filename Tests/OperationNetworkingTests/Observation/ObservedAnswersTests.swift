// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationExporters
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Observed downloads and cached responses", .timeLimit(.minutes(3)))
struct ObservedAnswersTests {
    private static let size = 900_000

    private func download(_ bench: OperationBench, _ folder: TemporaryFolder, _ log: EventLog) -> DownloadTo<Int> {
        let operation = DownloadTo(folder.url, bench, "/file") { file, _ in try Data(contentsOf: file).count }
        operation.addNetworkObserver(log)
        return operation
    }

    @Test func `a download that fails in its body has reported its headers`() async throws {
        let bench = try OperationBench(), folder = try TemporaryFolder(), log = EventLog()
        bench.server.route("GET", "/file") { _ in .repeating([7], count: 500_000).cut(at: 100_000) }
        #expect(await failure(of: download(bench, folder, log)) != nil)
        await log.checkEnd()
        #expect(log.kinds.filter { [.responded, .attemptEnded].contains($0) } == [.responded, .attemptEnded])
        #expect(log.events.events.first { $0.kind == .attemptEnded }?.head?.status == 200)
    }

    @Test func `a partial response that does not match is reported before the next request`() async throws {
        let bench = try OperationBench(), folder = try TemporaryFolder(), log = EventLog()
        let resource = LoopbackResource(.pattern(count: Self.size), etag: "\"one\"")
        let small = LoopbackResource(.pattern(count: 1_000), etag: "\"two\"")
        bench.server.route("GET", "/file") { request in
            if request.number == 0 { return resource.answer(to: request).cut(at: 400_000) }
            guard request["Range"] != nil else { return small.answer(to: request) }
            return .status(416, ["Content-Range": "bytes */1000"])
        }
        let operation = download(bench, folder, log)
        operation.networkAttempts.changePolicies { $0[.manual] = Again(most: 2) }
        #expect(try await operation.run() == 1_000)
        await log.checkEnd()
        let second = log.events.events.filter { $0.attempt == 2 && $0.hop > 0 }
        #expect(
            second.map(\.kind) == [
                .hopBegan, .leftBehind, .hopEnded, .hopBegan, .responded, .hopEnded, .attemptEnded,
            ])
        #expect(second.map { $0.head?.status } == [nil, 416, 416, nil, 200, 200, 200])
        // The first request is cut off when its headers are known, possibly before its times are reported.
        #expect(second.last { $0.kind == .hopEnded }?.metrics?.ended != nil)
    }

    private func run(_ session: ExchangeSession, _ url: URL, _ observers: any NetworkObserver...) async throws -> Int {
        let operation = NetworkDataOperation(url: url, urlSession: session) { data, _ in data.count }
        operation.callbackQueue = DispatchQueue(label: "answers")
        for observer in observers { operation.addNetworkObserver(observer) }
        return try await operation.run()
    }

    private func entries(_ archive: NetworkArchive) throws -> [(status: Int, comment: String)] {
        let file = try #require(try JSONSerialization.jsonObject(with: archive.har()) as? [String: [String: Any]])
        let entries = try #require(file["log"]?["entries"] as? [[String: Any]])
        return entries.map { entry in
            ((entry["response"] as? [String: Any])?["status"] as? Int ?? -1, entry["comment"] as? String ?? "")
        }
    }

    @Test
    func `a cached response is reported separately from the request that failed or was revalidated`() async throws {
        let folder = CacheFolderFixture(), stub = StubSession(), log = EventLog(), archive = NetworkArchive()
        let session = ExchangeSession.over(stub) { $0.cache = HTTPCache(folder: folder.url) }
        let kept = StubAnswer.text("body").with("Cache-Control", "max-age=0, stale-if-error=1000").with("ETag", "\"1\"")
        stub.route("GET", "/a", inTurn: kept, .status(304, ["ETag": "\"1\""]), .failure(.connectionLost))
        let url = try #require(URL(string: "http://stub.example/a"))
        for number in 1...3 {
            #expect(try await run(session, url, log, archive) == 4)
            await log.ended(number)
        }
        log.check()
        let story = log.events.events.filter { $0.hop > 0 && $0.kind != .attemptEnded }
        #expect(
            story.map(\.kind) == [
                .hopBegan, .responded, .hopEnded, .hopBegan, .leftBehind, .hopEnded, .responded, .hopBegan, .hopEnded,
                .responded,
            ])
        #expect(story.map { $0.head?.status } == [nil, 200, 200, nil, 304, 304, 200, nil, nil, 200])
        let entries = try entries(archive)
        #expect(entries.map(\.status) == [200, 304, 200, 0, 200])
        #expect(entries.map { $0.comment.hasSuffix("from the cache") } == [false, false, true, false, true])
    }
}
