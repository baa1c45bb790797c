// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationFiles
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct FileProgressTests {
    let folder: TemporaryFolder
    private let size = 5_000_000

    init() throws { folder = try TemporaryFolder() }

    /// Runs the operation, and returns its progress reports with `nil` for the end, in the order of a serial queue.
    private func events<Value>(of operation: FileOperation<Value>) async -> [FileProgress?] {
        let queue = DispatchQueue(label: "progress"), events = EventRecorder<FileProgress?>()
        operation.callbackQueue = queue
        operation.progressHandler = { events.record($0) }
        operation.observe { _ in events.record(nil) }
        operation.start()
        await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
        return events.events
    }

    private func check(_ events: [FileProgress?], total: Int, isKnown: Bool = true) {
        // The outcome is reported last, and once.
        #expect(events.last == .some(nil))
        let told = events.compactMap { $0 }
        #expect(told.count == events.count - 1)
        #expect(told.last?.completedBytes == Int64(total))
        #expect(told.last?.totalBytes == Int64(total))
        #expect(told.last?.fraction == 1)
        for (one, next) in zip(told, told.dropFirst()) {
            #expect(one.completedBytes <= next.completedBytes && one.completedItems <= next.completedItems)
        }
        if isKnown { #expect(told.allSatisfy { $0.totalBytes == Int64(total) }) }
        // The reports are frequent enough to look smooth, and rare enough not to flood a queue.
        #expect(told.count <= total / 1_048_576 + 1)
        #expect(told.count >= total / 2_097_152)
    }

    @Test func `reads, checksums, writes and copies report their progress`() async throws {
        let url = try folder.write(bytes: size, to: "file")
        check(await events(of: FileReadOperation(url)), total: size)
        check(await events(of: FileReadOperation(url, options: .init(range: 10..<4_000_010))), total: 4_000_000)
        check(await events(of: FileChecksumOperation(url, algorithm: .crc32)), total: size)
        check(await events(of: FileWriteOperation(Data(count: size), to: folder["new"])), total: size)
        check(await events(of: FileCopyOperation(from: url, to: folder["copy"])), total: size)
    }

    @Test func `an empty file reports its completion once`() async throws {
        let url = try folder.write("", to: "file")
        let events = await events(of: FileReadOperation(url))
        #expect(events == [FileProgress(completedBytes: 0, totalBytes: 0), nil])
        #expect(events.first??.fraction == 1)
    }

    @Test func `a copy or removal of a directory tree counts its items`() async throws {
        try folder.makeFolder("tree/sub")
        for number in 0..<250 { try folder.write("four", to: "tree/sub/\(number)") }
        let copied = await events(of: FileCopyOperation(from: folder["tree"], to: folder["copy"]))
        #expect(copied.compactMap { $0 }.map(\.completedItems) == [100, 200, 252])
        #expect(copied.compactMap { $0 }.map(\.totalBytes) == [nil, nil, 1000])
        let removed = await events(of: FileRemoveOperation(folder["tree"]))
        #expect(removed.compactMap { $0 }.map(\.completedItems) == [100, 200, 252])
    }

    @Test func `a failed write does not report complete progress`() async throws {
        let write = FileWriteOperation(Data(count: size), to: folder["file"])
            .intercepted { $0.kind == .rename ? .fail(EIO) : .proceed }
        let told = await events(of: write)
        #expect(told.last == .some(nil))
        #expect(write.outcome?.error != nil)
        #expect(told.compactMap { $0 }.count == 4)
    }

    @Test(arguments: 1...12) func `no progress is reported after a cancellation`(number: Int) async throws {
        let url = try folder.write(bytes: size, to: "file")
        let queue = DispatchQueue(label: "progress"), events = EventRecorder<String>()
        let read = FileReadOperation(url), reads = CallCounter()
        read.callbackQueue = queue
        read.progressHandler = { _ in events.record("progress") }
        read.cancellationHandler = { _ in events.record("cancelled") }
        read.files = FileSystem { [weak read] call in
            // The cancellation comes during a read. A report would follow every fourth read.
            if call.kind == .read, reads.next() == number { read?.cancel() }
            return .proceed
        }
        read.start()
        await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
        // A report that is still enqueued when the operation is canceled is dropped.
        #expect(events.events.last == "cancelled" && events.events.count <= (number - 1) / 4 + 1)
        #expect(events.events.filter { $0 == "cancelled" }.count == 1)
    }

    @Test func `no progress is reported after a concurrent cancellation`() async throws {
        let url = try folder.write("text", to: "file")
        try await TestThread.run {
            let team = ThreadTeam(count: 2)
            for round in 0..<40 {
                let queue = DispatchQueue(label: "progress"), events = EventRecorder<String>()
                let read = FileReadOperation(url), isTelling = Gate()
                read.callbackQueue = queue
                read.progressHandler = { _ in events.record("progress") }
                read.cancellationHandler = { _ in events.record("cancelled") }
                read.files = FileSystem { [weak read] call in
                    guard call.kind == .read, let read else { return .proceed }
                    // Reports progress until the cancellation comes.
                    isTelling.open()
                    let end = ContinuousClock.now + .seconds(20)
                    while !read.isCancelled, .now < end { read.deliver(FileProgress(completedBytes: 1, totalBytes: 2)) }
                    return .proceed
                }
                team.run([
                    { read.start() },
                    {
                        isTelling.wait()
                        read.cancel()
                    },
                ])
                queue.sync {}
                #expect(events.events.last == "cancelled", "in round \(round)")
            }
        }
    }

    @Test func `a progress handler that captures its operation is released, however it ends`() throws {
        let url = try folder.write("text", to: "file")
        let census = LiveObjects()
        func run(_ change: (FileReadOperation) -> Void) {
            let read = census.track(FileReadOperation(url))
            read.callbackQueue = DispatchQueue(label: "progress")
            read.progressHandler = { _ in _ = read }
            change(read)
            read.start()
            read.progressHandler = { _ in _ = read }
        }
        run { _ in }
        run { $0.cancel() }
        run { $0.files = FileSystem { _ in .fail(EIO) } }
        #expect(census.countAtRest() == 0)
    }

    @Test func `the progress of a file that grows during a read never exceeds its total`() {
        var meter = FileProgressMeter()
        meter.totalBytes = 10
        _ = meter.advance(bytes: 5)
        let progress = meter.advance(bytes: 5_000_000)
        #expect(progress == FileProgress(completedBytes: 5_000_005, totalBytes: 5_000_005))
        #expect(meter.complete() == FileProgress(completedBytes: 5_000_005, totalBytes: 5_000_005))
    }

    @Test func `a very long file reports its progress at most 100 times`() {
        var meter = FileProgressMeter()
        meter.totalBytes = 1 << 40
        var count = 0
        for _ in 0..<(1 << 20) where meter.advance(bytes: 1 << 20) != nil { count += 1 }
        #expect((90...100).contains(count))
    }

    @Test @MainActor func `progress is reported on the main actor before the result`() async throws {
        let (events, isWritten) = (EventRecorder<String>(), Gate())
        let write = FileWriteOperation(Data(count: 3 << 20), to: folder["new"])
            .onMainActor(progress: { events.record("\($0.fraction ?? 0)") })
            .onMainActor(success: { _ in
                events.record("written")
                isWritten.open()
            })
        write.callbackQueue = DispatchQueue(label: "elsewhere")
        _ = try await write.run()
        await isWritten.passage()
        #expect(events.events.suffix(2) == ["1.0", "written"])
        #expect(events.events.count >= 3)
    }
}
