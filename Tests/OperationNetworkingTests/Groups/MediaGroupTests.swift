// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// Loads all music and all videos of a user with the code of the example `albums`.
///
/// MediaService.swift is a link to it.
@Suite("Groups of requests that depend on earlier responses", .timeLimit(.minutes(Rounds.minutes)))
struct MediaGroupTests {
    private let bench: OperationBench
    private var server: LoopbackServer { bench.server }
    private let told = EventRecorder<String>()

    init() throws {
        bench = try OperationBench()
        serve()
    }

    /// Serves eight albums with two songs each, and four shows with three videos each.
    private func serve() {
        server.route("/people/*") { request in
            switch request.path.split(separator: "/").last {
            case "albums": .json(Self.list(8) { #"{"id":\#($0)}"# })
            case "shows": .json(Self.list(4) { #"{"id":\#($0)}"# })
            default: .json(#"{"id":1}"#)
            }
        }
        server.route("/albums/*") { request in
            .json(Self.list(2) { #"{"title":"\#(request.path.split(separator: "/")[1]).\#($0)"}"# })
        }
        server.route("/shows/*") { request in
            .json(Self.list(3) { #"{"title":"\#(request.path.split(separator: "/")[1]).\#($0)"}"# })
        }
        server.route("/fence") { _ in .text("here") }
    }

    private static func list(_ count: Int, _ make: (Int) -> String) -> String {
        "[" + (1...count).map(make).joined(separator: ",") + "]"
    }

    private static let requestCount = 1 + 1 + 8 + 1 + 4

    private var media: MediaService {
        var base = NetworkBase(server.url())
        base.session = bench.session
        base.callbackQueue = bench.callbacks
        return MediaService(base: base)
    }

    private func watch<Value, Failure>(_ operation: TypedOperation<Value, Failure>) {
        operation.callbackQueue = bench.callbacks
        operation.successHandler = { [told] _ in told.record("success") }
        operation.failureHandler = { [told] in told.record("failure \($0)") }
        operation.cancellationHandler = { [told] in told.record("\($0.code)") }
    }

    /// Sends a request, and checks that the server receives no other request.
    private func checkNothingMoreIsSent() async throws {
        // Connections with a pending response are closed, and the others may be used again.
        await server.counts { $0.openConnections == $0.idleConnections }
        // Earlier connections in the system's backlog are accepted before this request.
        _ = try await bench.text("/fence").run()
        let heads = server.counts.heads
        _ = try await bench.text("/fence").run()
        #expect(server.counts.heads == heads + 1)
    }

    @Test func `the code of the example has at most forty lines`() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "MediaService.swift")
        let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
        let code = lines.map { $0.drop { $0 == " " } }.filter { !$0.isEmpty && !$0.hasPrefix("//") }
        #expect(code.count <= 40)
    }

    @Test(arguments: [nil, 1, 3])
    func `the group returns all results in order`(width: Int?) async throws {
        let queue = QueueManager("media", width: width ?? .max)
        let group = media.everything(of: "ada")
        try queue.add(group)
        let (songs, videos) = try await group.value
        #expect(songs.map(\.title) == (1...8).flatMap { ["\($0).1", "\($0).2"] })
        #expect(videos.map(\.title) == (1...4).flatMap { ["\($0).1", "\($0).2", "\($0).3"] })
        #expect(server.counts.heads == Self.requestCount && server.counts.violations == 0)
        await queue.drained()
    }

    @Test func `if one request fails, the group fails, and the error names the request`() async throws {
        server.route("/albums/5/songs") { _ in .status(404) }
        let group = media.everything(of: "ada")
        await group.startAndEnd()
        guard case .failed(let failure) = group.outcome?.error?.root?.failure
        else { return unmet("\(String(describing: group.outcome))") }
        let error = failure as? NetworkError
        #expect(error?.status == 404 && "\(String(describing: error?.request))".contains("albums/5/songs"))
        try await checkNothingMoreIsSent()
    }

    @Test
    func `canceled while all responses are pending, a group closes each socket and sends nothing more`() async throws {
        for path in ["/albums/*", "/shows/*"] { server.route(path) { _ in .silence } }
        let group = media.everything(of: "ada")
        watch(group)
        group.start()
        // Eight requests may run, but only on as many connections as there are.
        let busy = await server.counts { $0.heads == 3 + 6 && $0.openConnections == 6 && $0.idleConnections == 0 }
        group.cancel()
        #expect(group.isCancelled)
        await group.ended()
        await server.counts { $0.openConnections == 0 }
        await bench.settled()
        #expect(told.events == ["requested"])
        #expect(server.counts.heads == busy.heads && server.counts.connections == busy.connections)
        try await checkNothingMoreIsSent()
    }

    /// A group whose operations all run on one thread, with handlers on each.
    private func synchronous() -> GroupOperation<Int, GroupFailure> {
        let base = media.base
        let get: @Sendable (String) -> EndpointOperation<[MediaService.Song]> = { path in
            let operation = base.get(path, as: [MediaService.Song].self)
            watch(operation)
            return operation
        }
        return GroupOperation(synchronous: { group in
            let first = get("albums/1/songs")
            let count = try group.perform(first).count
            let inner = GroupOperation(synchronous: { inner in try inner.perform(get("shows/1/videos")).count })
            watch(inner)
            return try count + group.perform(inner)
        })
    }

    @Test
    func `synchronous bodies that wait are canceled, and then only cancellation handlers are called`() async throws {
        server.route("/shows/*") { _ in .silence }
        let group = synchronous()
        watch(group)
        try QueueManager("synchronous", width: 1).add(group)
        _ = await server.heads(atLeast: 2)
        await bench.settled()
        #expect(told.events == ["success"])
        group.cancel()
        await group.ended()
        await server.counts { $0.openConnections == 0 }
        await bench.settled()
        #expect(told.events.sorted() == ["groupCancelled", "groupCancelled", "requested", "success"])
        try await checkNothingMoreIsSent()
    }

    @Test("A group that is canceled at a random moment has one outcome and sends nothing more", arguments: 1...4)
    func cancelledAnywhere(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed + Rounds.firstSeed)
        for round in 0..<Rounds.count(ci: 15, soak: 500) {
            let (before, calls) = (server.counts.heads, told.count)
            let queue = QueueManager("media", width: [1, 2, .max][Int.random(in: 0..<3, using: &random)])
            let group = bench.census.track(media.everything(of: "ada"))
            watch(group)
            let seen = Int.random(in: 0...Self.requestCount, using: &random)
            let pause = Int.random(in: 0..<3_000, using: &random)
            try queue.add(group)
            await server.counts { $0.heads >= before + seen }
            for _ in 0..<pause { _ = group.isCancelled }
            group.cancel()
            await group.ended()
            await queue.drained()
            await bench.settled()
            let (sent, events) = (server.counts.heads - before, told.events.dropFirst(calls))
            switch group.outcome {
            // A cancellation suppresses a handler that was not called yet.
            case .success: #expect(sent == Self.requestCount && (events == ["success"] || events == []))
            case .cancelled(let cause): #expect(cause == .requested && events == ["requested"])
            default: Issue.record("seed \(seed), round \(round): \(String(describing: group.outcome))")
            }
            #expect(sent <= Self.requestCount)
            try await checkNothingMoreIsSent()
        }
        bench.closeSession()
        await server.counts { $0.openConnections == 0 }
        try await bench.checkNothingIsLeft()
    }
}
