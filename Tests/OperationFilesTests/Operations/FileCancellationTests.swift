// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationFiles
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct FileCancellationTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// Cancels the operation during its n-th call of a kind, waits for its end, and returns the number of later calls.
    private func cancel<Value>(
        _ operation: FileOperation<Value>, inCall number: Int, of kind: FileSystemCall.Kind
    ) async throws -> Int {
        let reached = Gate(), proceed = Gate(), calls = CallCounter()
        operation.files = FileSystem { call in
            guard call.kind == kind else { return .proceed }
            if calls.next() == number {
                reached.open()
                proceed.wait()
            }
            return .proceed
        }
        async let end: Void = TestThread.run { operation.start() }
        await reached.passage()
        operation.cancel()
        #expect(operation.outcome?.cancellationCause == .requested)
        #expect(!operation.isFinished)
        proceed.open()
        try await end
        #expect(operation.isFinished)
        return calls.count - number
    }

    @Test func `a canceled read stops at the next chunk`() async throws {
        let url = try folder.write(bytes: 3_000_000, to: "file")
        #expect(try await cancel(FileReadOperation(url), inCall: 2, of: .read) == 0)
    }

    @Test func `a canceled checksum stops at the next chunk`() async throws {
        let url = try folder.write(bytes: 3_000_000, to: "file")
        #expect(try await cancel(FileChecksumOperation(url), inCall: 3, of: .read) == 0)
    }

    @Test(arguments: [FileWriteOptions.Mode.replacing, .creatingNew, .inPlace])
    func `a canceled write stops at the next chunk and leaves nothing behind`(
        mode: FileWriteOptions.Mode
    ) async throws {
        let options = FileWriteOptions(mode: mode, createsDirectories: true)
        let write = FileWriteOperation(Data.patterned(3_000_000), to: folder["sub/file"], options: options)
        #expect(try await cancel(write, inCall: 2, of: .write) == 0)
        #expect(folder.names() == [])
    }

    @Test(arguments: [FileSystemCall.Kind.write, .synchronize, .close, .rename])
    func `a canceled write keeps the old content before the rename, and has written the new content during it`(
        kind: FileSystemCall.Kind
    ) async throws {
        try folder.write("old", to: "file")
        _ = try await cancel(FileWriteOperation(Data("new".utf8), to: folder["file"]), inCall: 1, of: kind)
        #expect(folder.text("file") == (kind == .rename ? "new" : "old"))
        #expect(folder.names() == ["file"])
    }

    @Test func `a canceled copy of a file stops at the next chunk and leaves nothing behind`() async throws {
        try folder.write(bytes: 3_000_000, to: "file")
        let copy = FileCopyOperation(from: folder["file"], to: folder["copy"])
        #expect(try await cancel(copy, inCall: 3, of: .write) == 0)
        #expect(folder.names() == ["file"])
    }

    @Test func `a canceled copy of a directory tree stops at the next file and leaves nothing behind`() async throws {
        try folder.makeFolder("tree/sub")
        for number in 0..<50 { try folder.write("text", to: "tree/sub/\(number)") }
        let copy = FileCopyOperation(from: folder["tree"], to: folder["copy"])
        #expect(try await cancel(copy, inCall: 20, of: .read) == 0)
        #expect(folder.names() == ["tree"])
        #expect(folder.names(in: "tree/sub").count == 50)
    }

    @Test func `a canceled removal stops at the next file`() async throws {
        try folder.makeFolder("tree")
        for number in 0..<50 { try folder.write("text", to: "tree/\(number)") }
        #expect(try await cancel(FileRemoveOperation(folder["tree"]), inCall: 20, of: .remove) == 0)
        #expect(folder.names(in: "tree").count == 30)
    }

    @Test func `a canceled move to another file system leaves the original or a complete copy`() async throws {
        try folder.makeFolder("tree/sub")
        for number in 0..<5 { try folder.write("text", to: "tree/sub/\(number)") }
        for (kind, isMoved) in [(FileSystemCall.Kind.write, false), (.remove, true)] {
            let move = FileMoveOperation(from: folder["tree"], to: folder["moved"])
            let reached = Gate(), proceed = Gate()
            move.files = FileSystem { call in
                if call.kind == kind {
                    reached.open()
                    proceed.wait()
                }
                let isFirst = call.kind == .renameExclusively && call.name?.description == "tree"
                return isFirst ? .fail(EXDEV) : .proceed
            }
            async let end: Void = TestThread.run { move.start() }
            await reached.passage()
            move.cancel()
            proceed.open()
            try await end
            #expect(move.outcome?.cancellationCause != nil)
            #expect(folder.names() == (isMoved ? ["moved"] : ["tree"]))
            #expect(folder.names(in: isMoved ? "moved/sub" : "tree/sub").count == 5)
        }
    }

    @Test func `an operation canceled before its start makes no system calls`() throws {
        let calls = CallCounter()
        let write = FileWriteOperation(Data("new".utf8), to: folder["file"]).intercepted { _ in
            calls.next()
            return .proceed
        }
        write.cancel()
        write.start()
        #expect(write.isFinished)
        #expect(calls.count == 0)
        #expect(write.data.isEmpty)
    }

    @Test func `an operation canceled between its start and its body makes no system calls`() throws {
        try folder.write("old", to: "file")
        let calls = CallCounter()
        let count: FileSystem.Interceptor = { _ in
            calls.next()
            return .proceed
        }
        let write = FileWriteOperation(Data("new".utf8), to: folder["file"], options: .init(mode: .inPlace))
        let read = FileReadOperation(folder["file"])
        for operation in [write.intercepted(count), read.intercepted(count)] as [ManagedOperation] {
            // The delivery of inputs is the last step before the body.
            let upstream = ClosureOperation { 1 }
            if let write = operation as? FileWriteOperation {
                try write.receive(from: upstream, otherwise: .cancel) { write, _ in write.cancel() }
            } else if let read = operation as? FileReadOperation {
                try read.receive(from: upstream, otherwise: .cancel) { read, _ in read.cancel() }
            }
            upstream.start()
            operation.start()
            #expect(operation.isFinished && operation.isCancelled)
        }
        #expect(calls.count == 0)
        #expect(folder.text("file") == "old")
    }

    @Test func `canceling all writes in a queue leaves each file complete or absent`() async throws {
        let data = Data.patterned(600_000)
        let queue = OperationQueue()
        let operations = (0..<40).map { number in
            FileWriteOperation(data, to: folder["file-\(number)"], options: .init(isDurable: false))
        }
        for operation in operations { queue.addOperation(operation) }
        _ = await operations[3].finalOutcome
        queue.cancelAllOperations()
        try await TestThread.run { queue.waitUntilAllOperationsAreFinished() }
        for name in folder.names() {
            #expect(name.hasPrefix("file-"))
            #expect(try areSame(Data(contentsOf: folder[name]), data))
        }
        for (number, operation) in operations.enumerated() where operation.outcome?.result != nil {
            #expect(folder.names().contains("file-\(number)"))
        }
    }
}
