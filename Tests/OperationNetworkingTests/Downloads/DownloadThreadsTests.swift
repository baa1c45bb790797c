// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// Tests on which threads a download works with its files.
@Suite(.timeLimit(.minutes(3)))
struct DownloadThreadsTests {
    /// A pool from which a queue borrows the calling thread.
    private struct Pool: ThreadOwner {
        func threadWillWait() -> Bool { true }
        func threadDidWait() {}
    }

    private func prepare(_ bench: DownloadBench) throws -> (isInline: Bool, ready: Gate) {
        let (request, ready) = (try bench.bench.request("GET", "/file"), Gate())
        let caller = Locked(pthread_self())
        let isInline = Locked(false)
        let download = Download(to: .file(bench.url("file")))
        download.prepare(request) { _ in
            let isSame = caller.withLock { pthread_equal($0, pthread_self()) != 0 }
            isInline.withLock { $0 = isSame }
            ready.open()
        }
        return (ready.isOpen && isInline.withLock { $0 }, ready)
    }

    @Test func `files are prepared on the calling thread only if that thread may block`() async throws {
        let bench = try DownloadBench()
        let isInlineWhenBorrowed = try await TestThread.run {
            var result: Bool?
            BorrowedThread.run(by: Pool()) { result = try? prepare(bench).isInline }
            return result
        }
        #expect(isInlineWhenBorrowed == true)
        let (isInline, ready) = try await TestThread.run { try prepare(bench) }
        #expect(!isInline)
        await ready.passage()
    }

    @Test(arguments: [true, false])
    func `a small file that need not be durable is written where its response is evaluated`(
        isDurable: Bool
    ) async throws {
        let bench = try DownloadBench(serving: DownloadBench.resource(10_000))
        let operation = NetworkDownloadOperation<Bool>(
            url: bench.server.url("/file"), urlSession: bench.bench.session
        ) { [bench] _ in BorrowedThread.mayBlock && bench.holds("file", size: 10_000) }
        operation.destination = .file(bench.url("file"))
        operation.downloadOptions.isDurable = isDurable
        #expect(try await operation.run())
    }

    @Test func `an evaluator that blocks does not keep the next download of the same file from beginning`()
        async throws
    {
        let bench = try DownloadBench(serving: DownloadBench.resource(10_000))
        let (evaluating, gate) = (Gate(), Gate())
        let first = NetworkDownloadOperation<Int>(
            url: bench.server.url("/file"), urlSession: bench.bench.session
        ) { _ in
            evaluating.open()
            gate.wait()
            return 1
        }
        first.destination = .file(bench.url("file"))
        first.downloadOptions.isDurable = false
        first.start()
        await evaluating.passage()
        let options = with(DownloadOptions()) { $0.existingItem = .replace }
        #expect(try await bench.download(to: .file(bench.url("file")), options: options).file != nil)
        gate.open()
        #expect(try await first.value == 1)
    }

    @Test func `a download whose name is taken has the headers that named it`() async throws {
        let bench = try DownloadBench()
        let resource = DownloadBench.resource(1_000)
        bench.server.route("GET", "/file") {
            resource.answer(to: $0).with("Content-Disposition", "attachment; filename=\"name\"")
        }
        try Data("old".utf8).write(to: bench.url("name"))
        let operation = NetworkDownloadOperation<URL>(
            url: bench.server.url("/file"), urlSession: bench.bench.session
        ) { $0.body }
        operation.destination = .folder(bench.folder)
        _ = try? await operation.run()
        #expect(operation.networkError?.code == .destinationExists)
        #expect(operation.responseHead.map { DownloadFileName.name(for: $0) } == "name")
        #expect(bench.bytes("name") == Array("old".utf8) && bench.names() == ["name"])
    }
}
