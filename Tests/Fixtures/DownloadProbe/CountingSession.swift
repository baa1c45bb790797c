// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

/// A session that counts the bytes of the bodies it delivers.
final class CountingSession: NetworkSession {
    private let session: any NetworkSession
    private let counter: ByteCounter

    init(_ session: any NetworkSession, _ counter: ByteCounter) {
        self.session = session
        self.counter = counter
    }

    func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        session.makeTask(with: request, receiver: CountingReceiver(receiver, counter))
    }
}

private final class CountingReceiver: NetworkReceiver {
    private let receiver: any NetworkReceiver
    private let counter: ByteCounter

    init(_ receiver: any NetworkReceiver, _ counter: ByteCounter) {
        self.receiver = receiver
        self.counter = counter
    }

    func task(_ task: any NetworkTask, didReceive head: ResponseHead) { receiver.task(task, didReceive: head) }

    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {
        counter.add(bytes.count)
        receiver.task(task, didReceive: bytes)
    }

    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) { receiver.task(task, didEndWith: error) }
}

/// A number in a memory-mapped file.
///
/// It outlives the program, even after a crash.
final class ByteCounter: Sendable {
    // Sendable: only the session's one thread adds to it.
    private nonisolated(unsafe) let place: UnsafeMutablePointer<UInt64>

    init?(path: String) {
        let file = open(path, O_RDWR | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        guard let memory = mmap(nil, 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), memory != MAP_FAILED else {
            return nil
        }
        place = memory.bindMemory(to: UInt64.self, capacity: 1)
    }

    func add(_ count: Int) {
        place.pointee += UInt64(count)
    }
}
