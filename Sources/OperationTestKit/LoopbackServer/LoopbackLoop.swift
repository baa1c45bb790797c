// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The event loop of a server, which waits for its sockets and distributes their events.
///
/// The loop and its connections are used only on the server's thread.
final class LoopbackLoop {
    let options: LoopbackServer.Options
    let routes: LoopbackRoutes
    let journal: LoopbackJournal
    let mailbox: LoopbackInbox
    let poller = Poller()
    let inputBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)

    private let listeners: LoopbackListeners
    private var connections: [Int32: LoopbackConnection] = [:]
    private var files: [Int: Int32] = [:]
    private var connectionCount = 0
    private var requestCount = 0
    private var accepts: Bool
    /// Whether the system had no free descriptor for a waiting connection.
    private var isOutOfFiles = false
    private var isStopped = false

    init(
        _ options: LoopbackServer.Options, _ listeners: LoopbackListeners, _ mailbox: LoopbackInbox,
        _ routes: LoopbackRoutes, _ journal: LoopbackJournal
    ) {
        self.options = options
        self.listeners = listeners
        self.mailbox = mailbox
        self.routes = routes
        self.journal = journal
        accepts = options.accepts
    }

    deinit { inputBuffer.deallocate() }

    /// Runs the server until it is stopped, and then closes everything.
    func run() {
        poller.watch(mailbox.reading, for: .readable)
        watchListeners()
        while !isStopped {
            // No event reports that the system has a free descriptor again.
            let triesAgain = isOutOfFiles
            poller.wait(atMost: triesAgain ? 20 : -1) { file, result in handle(file, result) }
            if triesAgain { watchListeners() }
        }
        for connection in Array(connections.values) { connection.end(by: .close) }
        listeners.close()
        mailbox.close()
    }

    func nextRequestNumber() -> Int {
        defer { requestCount += 1 }
        return requestCount
    }

    /// Removes a connection whose descriptor is about to be closed.
    func remove(_ connection: LoopbackConnection) {
        poller.forget(connection.file)
        connections[connection.file] = nil
        files[connection.number] = nil
    }

    private func handle(_ file: Int32, _ result: PollEvents) {
        if let connection = connections[file] {
            connection.handle(result)
        } else if file == mailbox.reading {
            for message in mailbox.fetch() { handle(message) }
        } else if listeners.files.contains(file) {
            acceptConnections(from: file)
        }
    }

    private func handle(_ message: LoopbackInbox.Message) {
        switch message {
        case .resume(let number, let wait): connection(number)?.resume(after: wait)
        case .readOn(let number, let wait): connection(number)?.readOn(after: wait)
        case .setAccepting(let accepts):
            self.accepts = accepts
            watchListeners()
        case .endConnections(let ending, let idleOnly):
            for connection in Array(connections.values) where !idleOnly || connection.isIdle {
                connection.end(by: ending)
            }
        case .stop: isStopped = true
        }
    }

    private func connection(_ number: Int) -> LoopbackConnection? {
        files[number].flatMap { connections[$0] }
    }

    private func acceptConnections(from listener: Int32) {
        // The number is limited, so that existing connections get their turn.
        for _ in 0..<64 where accepts {
            let (file, isOutOfFiles) = Sockets.accept(listener)
            // The poller would report the waiting connection repeatedly.
            if isOutOfFiles { return watchListeners(isOutOfFiles: true) }
            guard let file else { return }
            let connection = LoopbackConnection(file: file, number: connectionCount, loop: self)
            connectionCount += 1
            connections[file] = connection
            files[connection.number] = file
            connection.begin()
        }
    }

    private func watchListeners(isOutOfFiles: Bool = false) {
        self.isOutOfFiles = isOutOfFiles
        for file in listeners.files { poller.watch(file, for: accepts && !isOutOfFiles ? .readable : []) }
    }
}

/// Messages from other threads to the thread of a server.
final class LoopbackInbox: Sendable {
    enum Message: Sendable {
        /// A connection may continue after a gate or a pause.
        case resume(connection: Int, wait: Int)
        /// A connection may read again.
        case readOn(connection: Int, wait: Int)
        case setAccepting(Bool)
        case endConnections(LoopbackEnding, idleOnly: Bool)
        case stop
    }

    /// The pending messages, and the writing end of the pipe, or nil after the pipe was closed.
    private let state: Locked<(messages: [Message], writing: Int32?)>
    /// The reading end of the pipe that wakes the thread, which the thread closes.
    let reading: Int32

    /// Creates a mailbox, or returns nil if the system has no free descriptor.
    init?() {
        guard let (reading, writing) = Sockets.makePipe() else { return nil }
        self.reading = reading
        state = Locked(([], writing))
    }

    func post(_ message: Message) {
        state.withLock { state in
            guard let writing = state.writing else { return }
            state.messages.append(message)
            // The lock prevents a concurrent close of the descriptor, and the call does not block. One byte is enough
            // for any number of pending messages.
            guard state.messages.count == 1 else { return }
            var byte: UInt8 = 1
            _ = write(writing, &byte, 1)
        }
    }

    /// Returns the pending messages, when the pipe is readable, on the server's thread.
    func fetch() -> [Message] {
        withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { buffer in
            _ = read(reading, buffer.baseAddress, buffer.count)
        }
        return state.withLock { state in
            defer { state.messages = [] }
            return state.messages
        }
    }

    /// Closes the pipe, so that later messages are dropped.
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
