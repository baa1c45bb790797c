// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite(.timeLimit(.minutes(3)))
struct DownloadOperationTests {
    private static let size = 900_000

    private let bench: DownloadBench
    private let resource = LoopbackResource(.bytes(TestPattern.bytes(count: size)), etag: "\"one\"")

    init() throws {
        bench = try DownloadBench(try #require(SessionKind.allCases.first))
    }

    private func operation(_ destination: DownloadDestination) -> NetworkDownloadOperation<URL> {
        let operation = NetworkDownloadOperation<URL>(
            url: bench.server.url("/file"), urlSession: bench.bench.session, evaluator: { file, _ in file })
        operation.destination = destination
        return operation
    }

    @Test func `an operation downloads to its destination`() async throws {
        bench.serve(resource)
        let operation = operation(.folder(bench.url("new")))
        operation.callbackQueue = DispatchQueue(label: "callbacks")
        let progress = Locked<[Int64]>([])
        operation.downloadProgressHandler = { report in progress.withLock { $0.append(report.completedBytes) } }
        #expect(try await operation.run() == bench.url("new/file"))
        #expect(operation.downloadedFile?.length == Int64(Self.size))
        #expect(bench.names("new") == ["file"])
        #expect(bench.bytes("new/file").map { TestPattern.matches($0) && $0.count == Self.size } == true)
        #expect(progress.withLock { $0 == $0.sorted() })
        #expect(operation.metrics?.bodyBytesReceived == Int64(Self.size))
    }

    @Test func `an operation resumes where another one failed, and sees the complete response`() async throws {
        let resource = resource
        bench.server.route("GET", "/file") { resource.answer(to: $0).cut(at: 400_000) }
        await #expect(throws: (any Error).self) { try await operation(.file(bench.url("file"))).run() }
        bench.serve(resource)
        let seen = Locked<(Int, Int64)?>(nil)
        let second = NetworkDownloadOperation<URL>(
            url: bench.server.url("/file"), urlSession: bench.bench.session,
            evaluator: { file, response in
                seen.withLock { $0 = (response.statusCode, response.expectedContentLength) }
                return file
            })
        second.destination = .file(bench.url("file"))
        second.responseRules.statuses = .only(200)
        _ = try await second.run()
        #expect((second.downloadedFile?.resumedBytes ?? 0) > 300_000)
        #expect(seen.withLock { $0.map { $0 == (200, Int64(Self.size)) } } == true)
        #expect(bench.bytes("file").map { TestPattern.matches($0) && $0.count == Self.size } == true)
        #expect(bench.names() == ["file"])
    }

    @Test(arguments: [true, false])
    func `the operation reports whether it resumed as soon as the headers arrive`(isChanged: Bool) async throws {
        let resource = resource
        bench.server.route("GET", "/file") { resource.answer(to: $0).cut(at: 400_000) }
        await #expect(throws: (any Error).self) { try await operation(.file(bench.url("file"))).run() }
        let changed = LoopbackResource(.pattern(count: Self.size), etag: isChanged ? "\"two\"" : resource.etag)
        bench.serve(changed)
        let second = operation(.file(bench.url("file")))
        second.callbackQueue = DispatchQueue(label: "callbacks")
        let seen = Locked<DownloadStart?>(nil)
        second.downloadProgressHandler = { [weak second] _ in seen.withLock { $0 = $0 ?? second?.downloadStart } }
        #expect(second.downloadStart == nil)
        _ = try await second.run()
        second.callbackQueue.sync {}
        let start = try #require(second.downloadStart)
        #expect(seen.withLock { $0 } == start)
        #expect((start.resumedBytes > 300_000) == !isChanged && (start.discardedBytes > 300_000) == isChanged)
        #expect(start.resumedBytes == 0 || start.discardedBytes == 0)
        #expect(second.downloadedFile?.discardedBytes == start.discardedBytes)
        #expect(bench.bytes("file").map { TestPattern.matches($0) && $0.count == Self.size } == true)
    }

    @Test func `a rejected response is never moved to the destination`() async throws {
        bench.server.route("GET", "/file") { _ in .text("no such file", status: 404) }
        do {
            _ = try await operation(.file(bench.url("new/file"))).run()
            #expect(Bool(false))
        } catch {
            guard case .failed(let error) = error else { return unmet("\(error)") }
            #expect(error.code == .unacceptableStatus)
            #expect(error.bodyPrefix == Data("no such file".utf8))
        }
        bench.server.route("GET", "/file") { _ in .text("please log in") }
        let typed = operation(.file(bench.url("new/file")))
        typed.responseRules.contentTypes = .json
        await #expect(throws: (any Error).self) { try await typed.run() }
        #expect(bench.names() == [])
    }

    @Test func `the time limit of an attempt ends before the file is moved to its destination`() async throws {
        bench.serve(resource)
        let stop = StoppedCall(at: .renameExclusively), clock = ManualClock()
        stop.arm()
        let operation = operation(.file(bench.url("file")))
        operation.clock = clock
        operation.downloadOptions.files = stop.files
        var retry = Retry(backoff: .constant(.zero), throttledBackoff: .constant(.zero), budget: nil)
        retry.attemptTimeout = .seconds(5)
        operation.retry = retry
        operation.start()
        await stop.reached.passage()
        clock.advance(by: .seconds(10))
        stop.passes.open()
        #expect(try await operation.value == bench.url("file"))
        #expect(operation.attemptCount == 1 && bench.server.counts.heads == 1)
        #expect(operation.downloadedFile != nil && bench.names() == ["file"])
    }

    @Test func `a POST is sent in another attempt if the first attempt could not create the file`() async throws {
        bench.server.route("POST", "/file") { _ in .text("Hello") }
        let isFirst = Locked(true)
        let request = try NetworkRequest("POST", url: bench.server.url("/file"), body: .data(Data("a".utf8)))
        let operation = NetworkDownloadOperation<URL>(request: request, urlSession: bench.bench.session)
        operation.destination = .file(bench.url("file"))
        operation.downloadOptions.files = FileSystem { call in
            let isPart = call.kind == .open && call.name?.description.hasSuffix(".part") == true
            return isPart && isFirst.withLock({ exchange(&$0, with: false) }) ? .fail(EMFILE) : .proceed
        }
        operation.retry = Retry(backoff: .constant(.zero), throttledBackoff: .constant(.zero), budget: nil)
        #expect(try await operation.run() == bench.url("file"))
        #expect(operation.attemptCount == 2 && bench.server.counts.heads == 1)
    }

    @Test func `another attempt waits until the previous one has released the partial file`() async throws {
        let (resource, gate) = (resource, Gate())
        defer { gate.open() }
        bench.server.route("GET", "/file") { request in
            guard request["Range"] == nil else { return resource.answer(to: request) }
            return LoopbackAnswer(
                .head(200, ["Content-Length": "900000", "ETag": "\"one\""]), .send(TestPattern.bytes(count: 300_000)),
                .stall(until: gate))
        }
        let stop = StoppedCall(at: .synchronize), clock = ManualClock()
        stop.arm()
        let operation = operation(.file(bench.url("file")))
        operation.clock = clock
        operation.downloadOptions.files = stop.files
        operation.downloadOptions.checkpointInterval = .zero
        var retry = Retry(backoff: .constant(.zero), throttledBackoff: .constant(.zero), budget: nil)
        retry.attemptTimeout = .seconds(5)
        operation.retry = retry
        operation.start()
        await stop.reached.passage()
        clock.advance(by: .seconds(5))
        try await waitUntil("the second attempt begins") { operation.attemptCount == 2 }
        // A download waits only one second for a file that another operation uses.
        clock.advance(by: .seconds(2))
        stop.passes.open()
        #expect(try await operation.value == bench.url("file"))
        #expect(operation.attemptCount == 2 && operation.downloadedFile?.resumedBytes ?? 0 > 0)
        #expect(bench.holds("file") && bench.names() == ["file"])
    }

    /// Returns an operation that rejects its first file, after the test changed it, and then makes another attempt.
    private func refusing(
        _ rule: ExistingItemRule, _ change: @escaping @Sendable (URL) throws -> Void
    ) -> NetworkDownloadOperation<URL> {
        let isFirst = Locked(true)
        let operation = NetworkDownloadOperation<URL>(
            url: bench.server.url("/file"), urlSession: bench.bench.session,
            evaluator: { file, _ in
                guard isFirst.withLock({ exchange(&$0, with: false) }) else { return file }
                try change(file)
                throw NetworkError(.credentialRejected)
            })
        operation.destination = .file(bench.url("file"))
        operation.downloadOptions.existingItem = rule
        operation.authenticate(
            by: Authenticator<String>("old", apply: { _, request in request }, refresh: { _ in "new" }))
        return operation
    }

    @Test func `a rejected file is removed before the next attempt, even if it was moved away`() async throws {
        bench.serve(resource)
        let away = bench.url("away")
        for change in [{ _ in }, { try FileManager.default.moveItem(at: $0, to: away) }]
            as [@Sendable (URL) throws -> Void]
        {
            #expect(try await refusing(.refuse, change).run() == bench.url("file"))
            #expect(bench.holds("file"))
            try FileManager.default.removeItem(at: bench.url("file"))
        }
        #expect(bench.server.counts.heads == 4)
    }

    @Test func `if another file replaced the rejected one, that file stays and the operation fails`() async throws {
        bench.serve(resource)
        let changes: [@Sendable (URL) throws -> Void] = [
            { try Data("mine".utf8).write(to: $0, options: .atomic) },
            { file in
                // The file has the same identity in the file system, but another program appended bytes.
                let handle = try FileHandle(forWritingTo: file)
                try handle.seekToEnd()
                try handle.write(contentsOf: Data("mine".utf8))
                try handle.close()
            },
        ]
        for change in changes {
            let operation = refusing(.refuse, change)
            let error = await failure(of: operation)
            #expect(error?.code == .destinationExists)
            #expect(error?.message.contains("did not remove the new file") == true)
            #expect(bench.bytes("file")?.suffix(4) == ArraySlice("mine".utf8))
            #expect(operation.downloadedFile?.url == bench.url("file"))
            try FileManager.default.removeItem(at: bench.url("file"))
        }
        #expect(bench.server.counts.heads == 2)
    }

    @Test func `if another file replaced the rejected one, it is overwritten if the options allow it`() async throws {
        bench.serve(resource)
        let operation = refusing(.replace) { try Data("mine".utf8).write(to: $0, options: .atomic) }
        #expect(try await operation.run() == bench.url("file"))
        #expect(bench.holds("file"))
    }

    @Test func `if a rejected file cannot be removed, the operation fails with an error that says so`() async throws {
        bench.serve(resource)
        let (folder, moved) = (bench.folder, bench.url("file").deletingLastPathComponent().path + "-moved")
        defer { try? FileManager.default.removeItem(atPath: moved) }
        // A file has replaced the folder.
        let operation = refusing(.refuse) { _ in
            try FileManager.default.moveItem(atPath: folder.path, toPath: moved)
            try Data().write(to: folder)
        }
        let error = await failure(of: operation)
        #expect(error?.code == .fileUnwritable)
        #expect(error?.message.contains("could not remove it before another attempt") == true)
    }

    @Test func `a removal that the system refuses is an error, and leaves the file`() async throws {
        bench.serve(resource)
        guard case .saved(let file, _, let published?) = try await bench.download(to: .file(bench.url("file")))
        else { return unmet("The file was not saved.") }
        for kind in [FileSystemCall.Kind.status, .remove] {
            let files = FileSystem { $0.kind == kind ? .fail(EACCES) : .proceed }
            #expect(throws: FileOperationError.self) { try file.remove(ifStill: published, files: files) }
            #expect(bench.holds("file"))
        }
        #expect(try file.remove(ifStill: published))
        #expect(bench.names().isEmpty)
        #expect(try file.remove(ifStill: published))
    }
}
