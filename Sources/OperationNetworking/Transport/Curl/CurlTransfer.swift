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
        private var isDecoded = false
        private var decodedCount: Int64 = 0
        private(set) var headerCount = 0
        private(set) var beganAt: Int64 = 0
        private var sentCount: Int64 = 0
        private var requestCount = 0
        /// It was suspended before anything was sent, and libcurl gave it up for us.
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
            (isReceivingStalled, isSendingStalled, isDecoded, isGivenUp) = (false, false, false, false)
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
            updatePauses()
        }

        /// The brakes are as they were; but they may have been set and released since libcurl was told to wait.
        func releaseStalls(bodyIsReady: Bool) {
            if bodyIsReady { isSendingStalled = false }
            if bodyIsReady || isReceivingStalled, let task, !task.isBraked { updatePauses() }
        }

        private func updatePauses() {
            if !brakes.contains(.receiving) { isReceivingStalled = false }
            var mask = 0
            if brakes.contains(.receiving) { mask |= OKCurlPauseReceiving }
            if brakes.contains(.sending) || isSendingStalled { mask |= OKCurlPauseSending }
            // It may deliver at once what libcurl had kept.
            _ = OKCurl.easyPause(handle.easy, Int32(mask))
        }
    }

    // What libcurl tells and asks. Each answer is what its callback is to return.
    extension CurlTransfer {
        /// A line of a head or a trailer.
        func receiveHeader(_ line: UnsafeRawBufferPointer) -> Int {
            guard let task, problem == nil else { return 0 }
            if deadlines.received(at: loop.now) { loop.rearm(self) }
            headerCount += line.count
            guard headerCount <= task.request.options.maximumHeaderSize else {
                fail(
                    .headerTooLarge,
                    "The head of the response is larger than \(task.request.options.maximumHeaderSize) bytes. "
                        + "Raise maximumHeaderSize in the request's options if that is right.")
                return 0
            }
            task.confined.machine.responded()
            switch parser.receive(line) {
            case .none: break
            case .refused(let reason): fail(.invalidResponse, "The response is no valid HTTP: \(reason).")
            case .head(let parts): receive(parts, task)
            }
            return problem == nil ? line.count : 0
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
                reason: parts.reason, isDecoded: isFinal && isDecoded)
            task.tell(isFinal ? .head(head) : .informational(head))
        }

        private func checkCodings(_ head: ResponseHeadParser.Head, _ task: CurlTask) {
            guard task.request.options.decodesContent, !task.request.headers.contains("Accept-Encoding") else { return }
            let codings = head.fields.values("Content-Encoding").flatMap { $0.split(separator: ",") }
                .map { String($0).trimmedBlanks.lowercased() }.filter { $0 != "identity" }
            isDecoded = !codings.isEmpty
            if codings.count > 2 {
                fail(.undecodableBody, "The body was compressed \(codings.count) times; at most 2 are accepted.")
            }
        }

        /// Bytes of the body.
        func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
            guard let task, problem == nil else { return 0 }
            if deadlines.received(at: loop.now) { loop.rearm(self) }
            switch task.permission {
            case .drop: return 0
            case .keep:
                isReceivingStalled = true
                return OKCurlWritePause
            case .go: break
            }
            if isDecoded, exceedsExpansion(bytes.count, task.request.options.maximumExpansion) { return 0 }
            task.confined.receiver?.task(task, didReceive: bytes)
            return bytes.count
        }

        private func exceedsExpansion(_ count: Int, _ limit: Int) -> Bool {
            decodedCount += Int64(count)
            guard decodedCount > 1 << 20 else { return false }
            let received = max(handle.size(OKCurlInfoBytesReceived), 1)
            guard decodedCount / received >= Int64(limit) else { return false }
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
        func announceRequest() -> Int {
            guard let task, problem == nil, !task.isCancelled else { return OKCurlPreRequestAbort }
            if task.isSuspended, requestCount == 0 {
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

        private func failUnanswered() {
            fail(
                .connectionLost,
                "The connection broke before the server answered. It may have acted upon the request, which is therefore "
                    + "not sent again.")
        }
    }
#endif
