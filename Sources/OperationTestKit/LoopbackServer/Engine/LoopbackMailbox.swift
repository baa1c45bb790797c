// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// What other threads ask of a loopback server's thread.
final class LoopbackMailbox: Sendable {
    enum Message: Sendable {
        /// Something that a connection waited for has come.
        case goOn(connection: Int, wait: Int)
        /// A connection may read again.
        case readOn(connection: Int, wait: Int)
        case setAccepting(Bool)
        case endConnections(LoopbackEnding, idleOnly: Bool)
        case stop
    }

    private struct State {
        var messages: [Message] = []
        var writing: Int32?
    }

    private let state: Locked<State>
    /// The end of the pipe that wakes the thread; closed by that thread.
    let reading: Int32

    /// Nil if the system has no descriptor left.
    init?() {
        guard let (reading, writing) = Sockets.makePipe() else { return nil }
        self.reading = reading
        state = Locked(State(writing: writing))
    }

    func post(_ message: Message) {
        state.withLock { state in
            guard let writing = state.writing else { return }
            state.messages.append(message)
            // Under the lock, so that the descriptor cannot be closed meanwhile; it does not block. One byte is enough
            // for any number of messages that were not yet fetched.
            guard state.messages.count == 1 else { return }
            var byte: UInt8 = 1
            _ = write(writing, &byte, 1)
        }
    }

    /// Takes the messages; called by the server's thread when the pipe can be read.
    func fetch() -> [Message] {
        withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { buffer in
            _ = read(reading, buffer.baseAddress, buffer.count)
        }
        return state.withLock { state in
            defer { state.messages = [] }
            return state.messages
        }
    }

    /// Closes the pipe; what is posted from now on is dropped.
    func close() {
        let writing = state.withLock { state in
            defer {
                state.writing = nil
                state.messages = []
            }
            return state.writing
        }
        guard let writing else { return }
        Sockets.close(writing)
        Sockets.close(reading)
    }
}
