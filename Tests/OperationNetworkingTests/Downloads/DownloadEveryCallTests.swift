// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Cancellation of a download at every system call", .timeLimit(.minutes(3)))
struct DownloadEveryCallTests {
    private static let size = 300_000

    /// Downloads over an old file, and cancels at one of the system calls.
    ///
    /// Returns whether there were so many calls.
    private func cancel(at index: Int, keepsPart: Bool) async throws -> Bool {
        let bench = try DownloadBench()
        try Data("old".utf8).write(to: bench.url("file"))
        bench.serve(LoopbackResource(.pattern(count: Self.size), etag: "\"one\""))
        let run = Locked<DownloadTask?>(nil)
        let count = Locked(0)
        let files = FileSystem { _ in
            let number = count.withLock { count -> Int in
                defer { count += 1 }
                return count
            }
            if number == index { run.withLock { $0 }?.cancel() }
            return .proceed
        }
        var options = DownloadOptions()
        options.existingItem = .replace
        options.keepsPart = keepsPart
        let download = Download(to: .file(bench.url("file")), options: with(options) { $0.files = files })
        let request = try bench.bench.request("GET", "/file")
        let running = RunningDownload(request, over: bench.bench.session, download) { _ in }
        run.withLock { $0 = running.task }
        running.task.resume()
        let conclusion = await running.conclusion()
        run.withLock { $0 = nil }
        let bytes = bench.bytes("file")
        if conclusion.file == nil {
            #expect(conclusion.error?.code == .cancelled, "call \(index)")
            #expect(bytes == Array("old".utf8), "call \(index)")
        } else {
            #expect(bytes.map { $0.count == Self.size && TestPattern.matches($0) } == true, "call \(index)")
        }
        let left = bench.names().filter { $0 != "file" }
        #expect(left.allSatisfy { keepsPart && $0.hasPrefix(".operationkit-") }, "call \(index): \(left)")
        await bench.server.counts { $0.openConnections == $0.idleConnections }
        // The canceled download does not block the next one.
        let next = try await bench.download(to: .file(bench.url("file")), options: options)
        #expect(next.file != nil, "after call \(index)")
        #expect(bench.bytes("file").map { $0.count == Self.size && TestPattern.matches($0) } == true)
        #expect(bench.names() == ["file"], "after call \(index)")
        return count.withLock { $0 } > index
    }

    @Test("Canceled at each system call in turn, a download leaves the new or the old file", arguments: [true, false])
    func anyCall(keepsPart: Bool) async throws {
        var index = 0
        while try await cancel(at: index, keepsPart: keepsPart), index < 100 { index += 1 }
        #expect((10..<100).contains(index))
    }
}
