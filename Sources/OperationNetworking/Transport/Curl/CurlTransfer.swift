// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if os(Linux)
    import CurlDeclarations

    /// A place for transfers, one after the other: an easy handle of libcurl, and what is known of the present transfer.
    ///
    /// Everything here happens on the thread of the session.
    final class CurlTransfer {
        let handle: CurlHandle
        let number: Int
        private unowned let loop: CurlLoop

        private(set) var task: CurlTask?
        private(set) var host = 0
        /// What went wrong on our side; it counts more than what libcurl makes of it.
        private(set) var problem: NetworkError?
        var deadlines = TransferDeadlines(.none, now: 0)
        private var parser = ResponseHeadParser()
        private var body: BodyReader?
        private var brakes: TaskMachine.Brakes = []
        /// libcurl was told to wait, by the answer of a callback.
        private var isReceivingStalled = false
        private var isSendingStalled = false
        private var status: Int?
        private var decoder: ContentDecoder?
        /// What came in, and was not decompressed because of a brake.
        private var undecoded: [UInt8] = []
        /// The decoder has more than there was room for.
        private var isDecoderFull = false
        private var receivedCount: Int64 = 0
        /// libcurl is done, and something is still to be decompressed.
        private var isWaitingForDecoder = false
        private var decodedCount: Int64 = 0
        private(set) var headerCount = 0
        private(set) var beganAt: Int64 = 0
        private var sentCount: Int64 = 0
        private var requestCount = 0
        /// Nothing was sent, and libcurl gave it up for us: it was suspended, or the connection was broken.
        private(set) var isGivenUp = false

        init?(_ number: Int, _ loop: CurlLoop) {
            guard let handle = CurlHandle(loop.configuration, loop.library) else { return nil }
            self.handle = handle
            self.number = number
            self.loop = loop
            setCallbacks()
        }

        /// Takes on a task, whose turn has come.
        func begin(_ task: CurlTask, host: Int) {
            self.task = task
            self.host = host
            let options = task.request.options
            problem = nil
            beganAt = loop.now
            deadlines = TransferDeadlines(options.timeouts, now: loop.now)
            parser = ResponseHeadParser()
            body = nil
            brakes = []
            (isReceivingStalled, isSendingStalled, isWaitingForDecoder, isGivenUp) = (false, false, false, false)
            decoder = nil
            isDecoderFull = false
            undecoded = []
            receivedCount = 0
            (status, decodedCount, headerCount, sentCount, requestCount) = (nil, 0, 0, 0, 0)
            // What is larger than that could not be counted by libcurl.
            let connect = options.timeouts.connect.map { $0.saturatedNanoseconds / 1_000_000 + 1 } ?? .max
            handle.prepare(
                task.request, connectMilliseconds: Int(min(connect, 2_000_000_000)),
                wholeLimit: loop.library.announcesRequests ? 64 << 10 : -1)
        }

        /// Lets go of the task.
        func end() {
            task = nil
            body = nil
        }

        func fail(_ code: NetworkError.Code, _ message: String, _ underlying: NetworkError.Underlying? = nil) {
            guard problem == nil else { return }
            handle.forbidsReuse = true
            problem = NetworkError(code: code, phase: phase, message: message, underlying: underlying)
            problem?.status = status
        }

        func fail(_ limit: TransferDeadlines.Limit) {
            let text: String
            switch limit {
            case .connect: text = "No connection was ready within the time limit (timeouts.connect)."
            case .firstByte: text = "The server did not begin to answer within the time limit (timeouts.firstByte)."
            case .idle: text = "Nothing moved for longer than the time limit (timeouts.idle)."
            case .total: text = "The transfer was not complete within the time limit (timeouts.total)."
            }
            fail(.timedOut, "\(text) Raise it in the request's options, or see what keeps the server.")
        }

        private func fail(_ error: NetworkError) {
            handle.forbidsReuse = true
            if problem == nil { problem = error }
        }

        var phase: NetworkError.Phase {
            switch task?.confined.machine.stage {
            case .connecting: .connecting
            case .sending: body?.isComplete == false ? .sending : .awaitingResponse
            case .receiving: .receiving
            case nil: .waiting
            }
        }

        var responseStatus: Int? { status }
        var hasReceivedHeaders: Bool { headerCount > 0 }
        var isResponseComplete: Bool { status != nil }
        var trailers: HeaderFields { parser.trailers }
        var hasSentAnything: Bool { requestCount > 0 || !loop.library.announcesRequests }
    }

    // For the callbacks.
    extension CurlTransfer {
        var announcesRequests: Bool { loop.library.announcesRequests }
        var loopContext: UnsafeRawPointer { UnsafeRawPointer(Unmanaged.passUnretained(loop).toOpaque()) }

        /// A socket was opened, for an address: so the name is known.
        func opened(_ descriptor: Int32) {
            loop.sockets.opened(descriptor)
            loop.resolved(self)
        }
    }

    // Brakes.
    extension CurlTransfer {
        /// Holds back what is to be held back, and lets go what is not.
        func apply(_ brakes: TaskMachine.Brakes) {
            self.brakes = brakes
            if brakes.isEmpty { deadlines.resume(at: loop.now) } else { deadlines.pause(at: loop.now) }
            loop.rearm(self)
            decodeRest()
            updatePauses()
        }

        /// The brakes are as they were; but they may have been set and released since libcurl was told to wait.
        func releaseStalls(bodyIsReady: Bool) {
            if bodyIsReady { isSendingStalled = false }
            decodeRest()
            if bodyIsReady || isReceivingStalled { updatePauses() }
        }

        private func updatePauses() {
            let holdsBack = brakes.contains(.receiving) || hasUndecoded
            if !holdsBack { isReceivingStalled = false }
            var mask = 0
            if holdsBack { mask |= OKCurlPauseReceiving }
            if brakes.contains(.sending) || isSendingStalled { mask |= OKCurlPauseSending }
            // It may deliver at once what libcurl had kept.
            _ = OKCurl.easyPause(handle.easy, Int32(mask))
        }
    }

    // What libcurl tells and asks. Each answer is what its callback is to return.
    extension CurlTransfer {
        /// Lines of a head or of trailers: one, or several that libcurl had kept during a pause.
        func receiveHeader(_ lines: UnsafeRawBufferPointer) -> Int {
            guard let task, problem == nil else { return 0 }
            if deadlines.received(at: loop.now) { loop.rearm(self) }
            headerCount += lines.count
            guard headerCount <= task.request.options.maximumHeaderSize else {
                fail(
                    .headerTooLarge,
                    "The head of the response is larger than \(task.request.options.maximumHeaderSize) bytes. "
                        + "Raise maximumHeaderSize in the request's options if that is right.")
                return 0
            }
            task.confined.machine.responded()
            var rest = lines[...]
            while problem == nil, !rest.isEmpty {
                let end = rest.firstIndex(of: 0x0A).map { $0 + 1 } ?? rest.endIndex
                receive(line: UnsafeRawBufferPointer(rebasing: rest[..<end]), task)
                rest = rest[end...]
            }
            return problem == nil ? lines.count : 0
        }

        private func receive(line: UnsafeRawBufferPointer, _ task: CurlTask) {
            switch parser.receive(line) {
            case .none: break
            case .refused(let reason): fail(.invalidResponse, "The response is no valid HTTP: \(reason).")
            case .head(let parts): receive(parts, task)
            }
        }

        private func receive(_ parts: ResponseHeadParser.Head, _ task: CurlTask) {
            let isFinal = parts.status >= 200
            if isFinal {
                status = parts.status
                task.tellSent(handle.wholeCount)
                checkCodings(parts, task)
                if problem != nil { return }
            }
            let head = ResponseHead(
                url: task.request.url, status: parts.status, headers: parts.fields, version: parts.version,
                reason: parts.reason, isDecoded: isFinal && decoder != nil)
            task.tell(isFinal ? .head(head) : .informational(head))
        }

        private func checkCodings(_ head: ResponseHeadParser.Head, _ task: CurlTask) {
            guard task.request.isDecoded else { return }
            let codings = head.fields.values("Content-Encoding").flatMap { $0.split(separator: ",") }
                .map { String($0).trimmedBlanks.lowercased() }.filter { $0 != "identity" && !$0.isEmpty }
            guard let coding = codings.first else { return }
            decoder = codings.count == 1 ? ContentDecoder(coding: coding) : nil
            if decoder == nil {
                fail(
                    .undecodableBody,
                    "The body is compressed in a way that nobody asked for: Content-Encoding is none of "
                        + "\(ContentDecoder.codings).")
            }
        }

        /// Bytes of the body.
        func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
            guard let task, problem == nil else { return 0 }
            if deadlines.received(at: loop.now) { loop.rearm(self) }
            switch hasUndecoded && task.permission == .go ? .keep : task.permission {
            case .drop:
                handle.forbidsReuse = true
                return 0
            case .keep:
                isReceivingStalled = true
                return OKCurlWritePause
            case .go: break
            }
            receivedCount += Int64(bytes.count)
            guard decoder != nil else {
                task.confined.receiver?.task(task, didReceive: bytes)
                return bytes.count
            }
            let used = decode(bytes, task)
            if used < bytes.count { undecoded = Array(bytes[used...]) }
            return problem == nil ? bytes.count : 0
        }

        private var hasUndecoded: Bool { !undecoded.isEmpty || isDecoderFull }

        /// Decompresses and tells until a brake is set; gives how much was used up.
        private func decode(_ bytes: UnsafeRawBufferPointer, _ task: CurlTask) -> Int {
            guard let decoder else { return bytes.count }
            var used = 0
            withUnsafeTemporaryAllocation(byteCount: 32 << 10, alignment: 1) { room in
                while problem == nil, used < bytes.count || isDecoderFull, task.permission == .go {
                    switch decoder.decode(UnsafeRawBufferPointer(rebasing: bytes[used...]), into: room) {
                    case .refused(let reason): fail(.undecodableBody, "The body cannot be decompressed: \(reason).")
                    case .portion(let count, let made):
                        used += count
                        isDecoderFull = made == room.count
                        if made > 0, !exceedsExpansion(made, task.request.options.maximumExpansion) {
                            let portion = UnsafeRawBufferPointer(rebasing: room[..<made])
                            task.confined.receiver?.task(task, didReceive: portion)
                        }
                    }
                }
            }
            return used
        }

        /// Goes on with what a brake had stopped.
        private func decodeRest() {
            guard let task, hasUndecoded, problem == nil else { return }
            let rest = undecoded
            let used = rest.withUnsafeBytes { decode($0, task) }
            undecoded = Array(rest[used...])
        }

        /// libcurl has told its end; false if that must wait until the rest was decompressed.
        func mayEnd(code: Int32) -> Bool {
            guard code == 0, problem == nil else { return true }
            isWaitingForDecoder = hasUndecoded
            if isWaitingForDecoder { return false }
            if decoder?.isComplete == false { fail(.undecodableBody, "The compressed body ends too early. Try again.") }
            return true
        }

        /// Whether the end that libcurl told of may be told now.
        var hasWaitedForDecoder: Bool { isWaitingForDecoder && !hasUndecoded }

        private func exceedsExpansion(_ count: Int, _ limit: Int) -> Bool {
            decodedCount += Int64(count)
            guard decodedCount > 1 << 20, decodedCount / max(receivedCount, 1) >= Int64(limit) else { return false }
            fail(
                .expansionTooLarge,
                "The decompressed body is more than \(limit) times as large as what was received. "
                    + "Raise maximumExpansion in the request's options if that is right.")
            return true
        }

        /// libcurl wants bytes of the body to send.
        func send(into buffer: UnsafeMutableRawBufferPointer) -> Int {
            guard let task, problem == nil else { return OKCurlReadAbort }
            if task.isCancelled { return OKCurlReadAbort }
            if task.isSuspended {
                // Whoever comes by because of the suspension lets go of this, too.
                isReceivingStalled = true
                return OKCurlReadPause
            }
            do throws(NetworkError) {
                let reader = try openedBody(task)
                switch try reader.read(into: buffer) {
                case .notYet:
                    isSendingStalled = true
                    return OKCurlReadPause
                case .end:
                    deadlines.sent(at: loop.now, isLast: true)
                    loop.rearm(self)
                    return 0
                case .bytes(let count):
                    sentCount += Int64(count)
                    deadlines.sent(at: loop.now, isLast: reader.isComplete)
                    loop.rearm(self)
                    task.tellSent(sentCount)
                    return count
                }
            } catch {
                fail(error)
                return OKCurlReadAbort
            }
        }

        private func openedBody(_ task: CurlTask) throws(NetworkError) -> BodyReader {
            if let body { return body }
            let reader = try BodyReader(task.request.body, waker: BodyWaker { [weak task] in task?.bodyIsReady() })
            body = reader
            return reader
        }

        /// libcurl wants to send the body from its beginning, over a new connection.
        func rewind(to offset: Int64) -> Int {
            guard let task else { return OKCurlSeekFailed }
            if offset == 0, body == nil { return OKCurlSeekDone }
            guard offset == 0, task.request.isIdempotent else {
                failUnanswered()
                return OKCurlSeekFailed
            }
            guard task.request.body.canBeSentAgain else {
                fail(
                    .bodyNotRepeatable,
                    "The connection broke, and the body of the request cannot be sent again. Make the request anew.")
                return OKCurlSeekFailed
            }
            body = nil
            sentCount = 0
            return OKCurlSeekDone
        }

        /// The connection is ready, and the request is about to be sent over it.
        func announceRequest(fromPort port: UInt16) -> Int {
            guard let task, problem == nil, !task.isCancelled else { return OKCurlPreRequestAbort }
            if requestCount == 0, task.isSuspended || usesBrokenConnection(port, task) {
                isGivenUp = true
                return OKCurlPreRequestAbort
            }
            requestCount += 1
            guard requestCount == 1 || task.request.isIdempotent else {
                failUnanswered()
                return OKCurlPreRequestAbort
            }
            task.confined.machine.connected()
            deadlines.connected(at: loop.now)
            loop.resolved(self)
            loop.rearm(self)
            return OKCurlPreRequestGo
        }

        /// Whether an old connection broke while the request was sent over it: it may be sent anew, over another one.
        ///
        /// libcurl does so by itself where it notices while it reads, and not where it notices while it sends.
        func isWorthRepeating(after code: Int32) -> Bool {
            guard code == 55, problem == nil, headerCount == 0, handle.long(OKCurlInfoNewConnections) == 0,
                let task, task.request.isIdempotent, task.request.body.canBeSentAgain,
                task.confined.repetitions < Self.maximumRepetitions
            else { return false }
            task.confined.repetitions += 1
            return true
        }

        /// As many old connections as may break under one request: as many as libcurl itself puts up with.
        private static var maximumRepetitions: Int { 5 }

        private func usesBrokenConnection(_ port: UInt16, _ task: CurlTask) -> Bool {
            guard !task.request.origin.isSecure, handle.long(OKCurlInfoNewConnections) == 0 else { return false }
            return loop.sockets.isBroken(localPort: port)
        }

        private func failUnanswered() {
            fail(
                .connectionLost,
                "The connection broke before the server answered. It may have acted upon the request, which is therefore "
                    + "not sent again.")
        }
    }
#endif
