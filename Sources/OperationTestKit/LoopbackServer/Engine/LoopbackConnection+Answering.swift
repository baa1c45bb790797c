// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

extension LoopbackConnection {
    /// A file of which a part is being sent.
    struct OutputFile {
        let descriptor: Int32
        var offset: Int
        var left: Int

        init?(path: String, offset: Int, count: Int) {
            descriptor = open(path, O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else { return nil }
            self.offset = offset
            left = count
        }

        /// The next bytes; nil if the file has none.
        mutating func next() -> ArraySlice<UInt8>? {
            let size = min(left, 1 << 16)
            let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
                count = max(pread(descriptor, buffer.baseAddress, size, off_t(offset)), 0)
            }
            offset += bytes.count
            left -= bytes.count
            return bytes.isEmpty ? nil : bytes[...]
        }

        func close() { Sockets.close(descriptor) }
    }

    /// Whether the script can go on as soon as the system takes bytes.
    var isPlaying: Bool { if case .none = wait { true } else { false } }

    /// Begins to answer the present request.
    func answer(_ answer: LoopbackAnswer) {
        guard let exchange else { return }
        var answer = answer
        let limit = loop.options.requestsPerConnection
        let isLast = limit.map { exchange.request.numberOnConnection + 1 >= $0 } ?? false
        if isLast, loop.options.announcesClosing { answer = answer.with("Connection", "close") }
        play(answer, isHead: exchange.request.method == "HEAD", closes: exchange.closes || isLast)
        if exchange.request.isComplete { player?.echo(exchange.request.body[...]) }
        advance()
    }

    func play(_ answer: LoopbackAnswer, isHead: Bool, closes: Bool) {
        player = ScriptPlayer(answer, isHead: isHead, closes: closes)
        wait = .none
    }

    /// Plays on, until the script waits for something or the system takes no more bytes.
    func advance() {
        // After so much others get their turn; the poller comes back to this one at once.
        var allowance = 1 << 21
        while !isClosed, allowance > 0 {
            guard let sent = flush() else { return }
            allowance -= sent
            guard output.isEmpty else { return }
            if outputFile != nil {
                fillFromFile()
                continue
            }
            guard isPlaying, let action = nextAction() else { return }
            perform(action)
        }
    }

    private func nextAction() -> ScriptPlayer.Action? {
        player?.next(
            bodyCount: exchange?.request.bodyCount ?? 0, bodyIsComplete: exchange?.request.isComplete ?? true)
    }

    private func perform(_ action: ScriptPlayer.Action) {
        switch action {
        case .send(let bytes): output = bytes
        case .sendFile(let path, let offset, let count):
            outputFile = OutputFile(path: path, offset: offset, count: count)
            if outputFile == nil { end(by: .reset) }
        case .awaitGate(let gate):
            let pass = beginWait()
            gate.whenOpen(pass)
        case .awaitTime(let duration):
            guard duration > .zero else { return }
            waitTimer = loop.options.clock.schedule(after: duration, beginWait())
        case .awaitBody: wait = .body
        case .stall: wait = .forever
        case .pace(let pace):
            self.pace = pace
            paceWait += 1
            paceTimer?.cancel()
            restsFromReading = false
        case .call(let body): body()
        case .end(let ending): end(by: ending)
        case .done(let closes): finishAnswer(closes: closes)
        }
    }

    private func beginWait() -> @Sendable () -> Void {
        wait = .event
        waitNumber += 1
        let (mailbox, connection, wait) = (loop.mailbox, number, waitNumber)
        return { mailbox.post(.goOn(connection: connection, wait: wait)) }
    }

    private func finishAnswer(closes: Bool) {
        player = nil
        if exchange != nil { loop.journal.count { $0.answers += 1 } }
        exchange?.isAnswered = true
        if closes {
            // A connection that is closed with bytes of the client unread is reset by the system, and the client may
            // never see the answer. So the rest is read first.
            let isRead = (exchange?.request.isComplete ?? true) && parser.waitingCount == 0
            end(by: isRead ? .close : .closeSending)
        } else if exchange?.request.isComplete == true {
            finishExchange()
        }
    }

    private func fillFromFile() {
        guard let bytes = outputFile?.next() else { return end(by: .reset) }
        output = bytes
        if outputFile?.left == 0 {
            outputFile?.close()
            outputFile = nil
        }
    }

    /// Sends what is ready; returns how much was sent, or nil if the connection is gone.
    private func flush() -> Int? {
        var total = 0
        while !output.isEmpty {
            guard let count = output.withUnsafeBytes({ Sockets.send(file, $0) }) else {
                if let exchange, !exchange.isAnswered { loop.journal.count { $0.abandoned += 1 } }
                end(by: .close)
                return nil
            }
            if count == 0 { break }
            total += count
            output = output.dropFirst(count)
        }
        if total > 0 { loop.journal.count { [total] in $0.sentBytes += total } }
        return total
    }
}
