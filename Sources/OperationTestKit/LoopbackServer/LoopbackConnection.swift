// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A connection of a server, which parses and records the requests and plays the responses.
final class LoopbackConnection {
    /// A request, from its request line to the end of its response.
    struct Exchange {
        var request: LoopbackRequest
        let closes: Bool
        let route: LoopbackRoutes.Route?
        var isAnswered = false
        var hasSurplus = false
    }

    let file: Int32
    let number: Int
    unowned let loop: LoopbackLoop

    var parser = RequestParser()
    var exchange: Exchange?
    var isClosed = false
    /// Whether the server sends nothing more, because it stalls or has closed its sending side.
    private var isSilent = false
    private(set) var isIdle = false
    private var requestCount = 0
    private var isParsing = false
    private var interest: PollEvents?

    var pace = LoopbackStep.Pace.full
    var paceWait = 0
    var paceTimer: (any OperationTimer)?
    /// Whether reading waits for the next interval.
    var restsFromReading = false

    var player: ScriptPlayer?
    var wait = Wait.none
    var waitNumber = 0
    /// Ends the wait for a gate or a pause.
    var stopWaiting: (() -> Void)?
    var output: ArraySlice<UInt8> = []
    var outputFile: OutputFile?

    enum Wait {
        case none
        case event
        case body
        case forever
    }

    init(file: Int32, number: Int, loop: LoopbackLoop) {
        self.file = file
        self.number = number
        self.loop = loop
    }

    func begin() {
        loop.journal.count {
            $0.connections += 1
            $0.openConnections += 1
        }
        if let greeting = loop.routes.greeting?(number) {
            play(greeting, isHead: false, closes: false)
            advance()
        }
        settle()
    }

    func handle(_ result: PollEvents) {
        if result.contains(.writable) { advance() }
        // An error is found when the connection is read.
        if !isClosed, result != .writable { receive() }
        settle()
    }

    /// Continues the script after a gate or a pause, unless it is waiting for something else.
    func resume(after number: Int) {
        guard case .event = wait, number == waitNumber, !isClosed else { return }
        wait = .none
        stopWaiting = nil
        advance()
        settle()
    }

    /// Reads again after an interval of slow reading.
    func readOn(after number: Int) {
        guard number == paceWait, !isClosed else { return }
        restsFromReading = false
        settle()
    }

    /// Ends the connection immediately, regardless of its state.
    func end(by ending: LoopbackEnding) {
        guard !isClosed else { return }
        stopSending()
        switch ending {
        case .stall, .closeSending:
            isSilent = true
            if ending == .closeSending { Sockets.closeSending(file) }
            return settle()
        case .close, .reset: break
        }
        isClosed = true
        paceTimer?.cancel()
        if let exchange, !exchange.request.isComplete { loop.journal.end(exchange.request) }
        exchange = nil
        loop.remove(self)
        if ending == .reset { Sockets.reset(file) } else { Sockets.close(file) }
        let wasIdle = isIdle
        loop.journal.count {
            $0.openConnections -= 1
            if wasIdle { $0.idleConnections -= 1 }
        }
    }

    private func stopSending() {
        player = nil
        output = []
        outputFile?.close()
        outputFile = nil
        wait = .none
        waitNumber += 1
        stopWaiting?()
        stopWaiting = nil
    }

    /// Records whether the connection is idle, and updates the interest of the poller.
    func settle() {
        guard !isClosed else { return }
        let isIdleNow = exchange == nil && player == nil && !isSilent && parser.isBetweenRequests
        if isIdleNow != isIdle {
            isIdle = isIdleNow
            loop.journal.count { $0.idleConnections += isIdleNow ? 1 : -1 }
        }
        var wanted: PollEvents = []
        if isReading { wanted.insert(.readable) }
        if !output.isEmpty || outputFile != nil || (player != nil && isPlaying) { wanted.insert(.writable) }
        guard wanted != interest else { return }
        interest = wanted
        loop.poller.watch(file, for: wanted)
    }

    private var isReading: Bool {
        if case .none = pace { return false }
        let isFull = parser.waitingCount > 1 << 20 || (player?.echoCount ?? 0) > 1 << 18
        return !restsFromReading && !isFull
    }

    private func receive() {
        var buffer = loop.inputBuffer
        if case .slow(let size, let interval) = pace {
            buffer = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(size))
            rest(for: interval)
        }
        guard let count = Sockets.receive(file, into: buffer) else { return clientLeft() }
        guard count > 0 else { return }
        parser.append(UnsafeRawBufferPointer(rebasing: buffer.prefix(count)))
        parse()
    }

    private func rest(for interval: Duration) {
        restsFromReading = true
        paceWait += 1
        let (mailbox, number, wait) = (loop.mailbox, number, paceWait)
        paceTimer = loop.options.clock.schedule(after: interval) {
            mailbox.post(.readOn(connection: number, wait: wait))
        }
    }

    private func clientLeft() {
        if let exchange, !exchange.isAnswered { loop.journal.count { $0.abandoned += 1 } }
        end(by: .close)
    }

    /// Parses the received data as far as possible.
    func parse() {
        // A response that ends during this loop lets it continue with the next request.
        guard !isParsing else { return }
        isParsing = true
        defer { isParsing = false }
        while !isClosed, let event = parser.next() {
            switch event {
            case .head(let head): beginRequest(head)
            case .body(let bytes): add(bytes)
            case .end(let trailers): endRequest(trailers)
            case .violation(let code, let detail): report(code, detail)
            case .broken: return refuse()
            }
        }
        reportSurplus()
    }

    private func beginRequest(_ head: RequestHead) {
        let request = LoopbackRequest(
            number: loop.nextRequestNumber(), connection: number, numberOnConnection: requestCount, method: head.method,
            target: head.target, version: head.version, fields: head.fields, headBytes: head.bytes,
            headArrived: loop.options.clock.now)
        requestCount += 1
        let route = loop.routes.route(request.method, request.path)
        exchange = Exchange(request: request, closes: head.closes, route: route)
        loop.journal.begin(request)
        guard !isSilent else { return }
        if let route, route.answersEarly {
            answer(route.handler(request))
        } else if head.expectsContinue, loop.options.sendsContinue {
            output += Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)
            advance()
        }
    }

    private func add(_ bytes: ArraySlice<UInt8>) {
        exchange?.request.bodyCount += bytes.count
        if let kept = exchange?.request.body.count, kept < loop.options.keptBodyBytes {
            exchange?.request.body += bytes.prefix(loop.options.keptBodyBytes - kept)
        }
        loop.journal.count { $0.bodyBytes += bytes.count }
        player?.echo(bytes)
        bodyGrew()
    }

    private func endRequest(_ trailers: [LoopbackField]) {
        exchange?.request.trailers = trailers
        exchange?.request.isComplete = true
        exchange?.request.arrived = loop.options.clock.now
        guard let exchange else { return }
        loop.journal.end(exchange.request)
        if exchange.isAnswered { return finishExchange() }
        if player == nil, !isSilent, exchange.route?.answersEarly != true {
            answer(exchange.route?.handler(exchange.request) ?? .status(404))
        } else {
            bodyGrew()
        }
    }

    private func bodyGrew() {
        guard case .body = wait else { return }
        wait = .none
        advance()
    }

    /// Prepares for the next request.
    func finishExchange() {
        exchange = nil
        parser.beginNext()
        parse()
    }

    private func report(_ code: LoopbackViolation.Code, _ detail: String) {
        loop.journal.add(LoopbackViolation(code: code, connection: number, detail: detail))
    }

    private func reportSurplus() {
        guard !isClosed, let exchange, exchange.request.isComplete, !exchange.hasSurplus, parser.waitingCount > 0 else {
            return
        }
        self.exchange?.hasSurplus = true
        report(.surplus, "\(parser.waitingCount) bytes: \(RequestParser.quoted(parser.waiting))")
    }

    /// Responds to a request that cannot be parsed.
    private func refuse() {
        guard player == nil, !isSilent else { return }
        play(.status(400).with("Connection", "close"), isHead: false, closes: true)
        advance()
    }
}

extension LoopbackConnection {
    /// A file of which a part is sent.
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

        /// Returns the next bytes, or nil if the file has none.
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

    /// Whether the script can continue as soon as the system accepts data.
    var isPlaying: Bool { if case .none = wait { true } else { false } }

    /// Begins the response to the current request.
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

    /// Plays the script until it waits for something or the system accepts no more data.
    func advance() {
        // After this number of bytes, other connections take their turn, and the poller returns to this one
        // immediately.
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
            let number = gate.whenOpen(beginWait())
            if let number { stopWaiting = { gate.stopWaiting(number) } }
        case .awaitTime(let duration):
            guard duration > .zero else { return }
            let timer = loop.options.clock.schedule(after: duration, beginWait())
            stopWaiting = { timer.cancel() }
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
        return { mailbox.post(.resume(connection: connection, wait: wait)) }
    }

    private func finishAnswer(closes: Bool) {
        player = nil
        if exchange != nil { loop.journal.count { $0.answers += 1 } }
        exchange?.isAnswered = true
        if closes {
            // If unread data remains, the system resets a closed connection, and the client may never receive the
            // response. So the rest is read first.
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

    /// Sends the pending output, and returns the number of bytes, or nil if the connection has ended.
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
