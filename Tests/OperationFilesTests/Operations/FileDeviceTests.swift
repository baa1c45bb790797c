// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationFiles
import OperationTestKit
import Testing

/// Tests with a device that is not always ready, a terminal whose other end the test holds.
@Suite(.timeLimit(.minutes(3)))
struct FileDeviceTests {
    private final class Terminal: Sendable {
        let url: URL
        private let near: Int32
        private let far: Int32

        /// Returns `nil` if the system provides no terminal.
        init?(isRaw: Bool) {
            #if os(macOS) || os(Linux)
                var (near, far) = (Int32(-1), Int32(-1))
                guard openpty(&near, &far, nil, nil, nil) == 0, let name = ttyname(far) else { return nil }
                url = URL(fileURLWithPath: String(cString: name))
                (self.near, self.far) = (near, far)
                _ = fcntl(near, F_SETFL, O_NONBLOCK)
                var settings = termios()
                tcgetattr(far, &settings)
                if isRaw { cfmakeraw(&settings) }
                tcsetattr(far, TCSANOW, &settings)
            #else
                return nil
            #endif
        }

        deinit {
            close(far)
            close(near)
        }

        /// Reads the given number of bytes from the terminal, or fewer if the operation has finished.
        func take(_ count: Int, from operation: Operation) -> Data {
            var data = Data()
            while data.count < count {
                let isFinished = operation.isFinished
                var request = pollfd(fd: near, events: Int16(POLLIN), revents: 0)
                _ = poll(&request, 1, 20)
                let bytes = withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
                    Data(buffer.prefix(max(read(near, buffer.baseAddress, buffer.count), 0)))
                }
                if bytes.isEmpty && isFinished { break }
                data += bytes
            }
            return data
        }

        /// Writes text to the terminal, as if a user typed it.
        func type(_ text: String) {
            FileHandle(fileDescriptor: near, closeOnDealloc: false).write(Data(text.utf8))
        }
    }

    /// Starts the operation, waits until it has made `count` calls or has ended, and calls `then`.
    private func run<Value>(
        _ operation: FileOperation<Value>, until count: Int, _ kind: FileSystemCall.Kind, then: () async throws -> Void
    ) async throws {
        let calls = EventRecorder<Int>()
        operation.files = FileSystem { call in
            if call.kind == kind { calls.record(1) }
            return .proceed
        }
        operation.callbackQueue = DispatchQueue(label: "device")
        operation.observe { _ in for _ in 0..<count { calls.record(1) } }
        async let end: Void = TestThread.run { operation.start() }
        _ = await calls.events(atLeast: count)
        try await then()
        try await end
    }

    @Test func `a write to a device that temporarily accepts no data succeeds`() async throws {
        guard let terminal = Terminal(isRaw: true) else { return }
        let data = Data.patterned(300_000)
        let write = FileWriteOperation(data, to: terminal.url, options: .init(mode: .inPlace))
        let taken = Locked(Data())
        try await run(write, until: 10, .write) {
            try await TestThread.run {
                let all = terminal.take(data.count, from: write)
                taken.withLock { $0 = all }
            }
        }
        #expect(write.outcome?.result == terminal.url)
        #expect(areSame(taken.withLock { $0 }, data))
    }

    @Test func `a read from a device that temporarily has no data succeeds`() async throws {
        // The terminal delivers lines, and Control-D ends the input.
        guard let terminal = Terminal(isRaw: false) else { return }
        let read = FileReadOperation(terminal.url)
        try await run(read, until: 3, .read) { terminal.type("text\n\u{4}") }
        #expect(read.outcome?.result == Data("text\n".utf8))
    }

    @Test func `a cancellation ends the wait for a device`() async throws {
        guard let terminal = Terminal(isRaw: true) else { return }
        let write = FileWriteOperation(Data(count: 300_000), to: terminal.url, options: .init(mode: .inPlace))
        try await run(write, until: 10, .write) { write.cancel() }
        #expect(write.outcome?.cancellationCause == .requested)
        let read = FileReadOperation(terminal.url)
        try await run(read, until: 3, .read) { read.cancel() }
        #expect(read.outcome?.cancellationCause == .requested)
        #expect(read.isFinished)
    }
}
