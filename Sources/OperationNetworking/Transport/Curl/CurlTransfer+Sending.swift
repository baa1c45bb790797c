// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations

    // What libcurl asks while it sends the request. Each answer is what its callback is to return.
    extension CurlTransfer {
        /// The connection is ready, and the request is about to be sent over it.
        func announceRequest(over ports: CurlSockets.Ports) -> Int {
            guard let task, problem == nil else { return OKCurlPreRequestAbort }
            let demands = task.currentDemands
            if demands.isCancelled { return OKCurlPreRequestAbort }
            guard status == nil else {
                isRepetitionRefused = true
                return OKCurlPreRequestAbort
            }
            if requestCount == 0, demands.isSuspended || usesBrokenConnection(ports, task) {
                isGivenUp = true
                return OKCurlPreRequestAbort
            }
            guard isBodyAsEmptyAsStated(task) else { return OKCurlPreRequestAbort }
            requestCount += 1
            guard takeBackRefused(task) || requestCount == 1 || task.request.isIdempotent else {
                failUnanswered()
                return OKCurlPreRequestAbort
            }
            task.confined.machine.connected()
            task.confined.extras.wasSentBefore = task.confined.wasSent
            task.confined.wasSent = true
            watch(ports, task)
            deadlines.connected(at: loop.now)
            nameIsKnown()
            loop.rearm(self)
            return OKCurlPreRequestGo
        }

        /// libcurl asks for nothing of a body without bytes: whether there are some after all is looked up here.
        private func isBodyAsEmptyAsStated(_ task: CurlTask) -> Bool {
            guard task.request.body.length == 0 else { return true }
            do throws(NetworkError) {
                switch task.request.body.source {
                case .file(let region): try region.check()
                case .stream:
                    try withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { byte throws(NetworkError) in
                        _ = try outlet.read(into: byte) { BodyWaker {} }
                    }
                case .none, .data: break
                }
                return true
            } catch {
                fail(error)
                return false
            }
        }

        private func usesBrokenConnection(_ ports: CurlSockets.Ports, _ task: CurlTask) -> Bool {
            guard !task.request.origin.isSecure, handle.long(OKCurlInfoNewConnections) == 0 else { return false }
            return loop.sockets.isBroken(ports)
        }

        /// libcurl wants bytes of the body to send.
        func send(into buffer: UnsafeMutableRawBufferPointer) -> Int {
            guard let task, problem == nil else { return OKCurlReadAbort }
            let demands = task.currentDemands
            if demands.isCancelled { return OKCurlReadAbort }
            if demands.isSuspended {
                // Whoever comes by because of the suspension lets go of this, too.
                isReceivingStalled = true
                return OKCurlReadPause
            }
            do throws(NetworkError) {
                let portion = try outlet.read(into: buffer) { BodyWaker { [weak task] in task?.bodyIsReady() } }
                return sent(portion, task)
            } catch {
                fail(error)
                return OKCurlReadAbort
            }
        }

        private func sent(_ portion: BodyPortion, _ task: CurlTask) -> Int {
            switch portion {
            case .notYet:
                isSendingStalled = true
                return OKCurlReadPause
            case .end:
                deadlines.sent(at: loop.now, isLast: true)
                loop.rearm(self)
                return 0
            case .bytes(let count):
                loop.fruitlessRounds = 0
                deadlines.sent(at: loop.now, isLast: outlet.isComplete == true)
                loop.rearm(self)
                task.tellSent(outlet.count, wasUnderWay: true)
                return count
            }
        }

        /// libcurl wants to send the body from its beginning, over a new connection.
        func rewind(to offset: Int64) -> Int {
            guard let task else { return OKCurlSeekFailed }
            guard status == nil else {
                isRepetitionRefused = true
                return OKCurlSeekFailed
            }
            if offset == 0, !outlet.isOpen { return OKCurlSeekDone }
            guard offset == 0, isRefused || task.request.isIdempotent else {
                failUnanswered()
                return OKCurlSeekFailed
            }
            guard task.request.body.canBeSentAgain else {
                failUnrepeatable()
                return OKCurlSeekFailed
            }
            outlet.rewind()
            return OKCurlSeekDone
        }

        /// Whether the request is to be given to libcurl once more.
        func isToBeginAgain(after code: Int32) -> Bool {
            guard problem == nil, let task else { return false }
            if code == 0, !isRefused { return isGivenUp }
            // libcurl may have waited for a connection in order to repeat a request that must not be sent twice.
            guard requestCount == 0 || isRefused || task.request.isIdempotent else { return false }
            if code == 28 { followPauses() }
            let isTooEarly = code == 28 && deadlines.outlastsLibcurl(at: loop.engine.now)
            return isGivenUp || isTooEarly || isWorthRepeating(after: code)
        }

        /// Whether an old connection broke while the request was sent over it: it may be sent anew, over another one.
        ///
        /// libcurl does so by itself where it notices while it reads, and not where it notices while it sends. Nor does it
        /// with an HTTP/2 connection that takes no more requests, as of a server that is reloaded, which it even tries again.
        private func isWorthRepeating(after code: Int32) -> Bool {
            if isRefused { return isRefusedWorthRepeating(after: code) }
            let isOldConnection = (code == 55 || code == 16) && handle.long(OKCurlInfoNewConnections) == 0
            // libcurl has repeated the request as often as it does. It also counts what an HTTP/2 server refused.
            let isGivenUpByLibcurl = (code == 55 || code == 56) && requestCount > Self.maximumRepetitions
            guard isOldConnection || isGivenUpByLibcurl, headerCount == 0, let task, task.request.isIdempotent,
                task.request.body.canBeSentAgain, task.confined.extras.repetitions < Self.maximumRepetitions
            else { return false }
            task.confined.extras.repetitions += 1
            task.confined.extras.wantsNewConnection = code == 16
            return true
        }

        /// As many old connections as may break under one request: as many as libcurl itself puts up with.
        private static var maximumRepetitions: Int { 5 }

        /// What libcurl's code means where it wanted to ask once more by itself: the head of the answer is there, but its body
        /// may have been thrown away for that (417), or have been cut (a stream of HTTP/2 that was reset).
        ///
        /// libcurl also reports the end of a stream as a failure if the server ended it before the whole request was sent,
        /// which a server may do after a complete response (RFC 9113, 8.1).
        func codeOfAnswer(_ code: Int32) -> Int32 {
            if code != 0, isAnswered, CurlErrorMapping.endsOfStreams.contains(code) { return 0 }
            guard isRepetitionRefused else { return code }
            if !bodyCount.isComplete {
                fail(
                    .truncatedBody,
                    status == 417
                        ? "The server refused what it was asked to expect, and libcurl threw away why. Try again with "
                            + "expectsContinue switched off."
                        : "The connection, or the stream, ended before the body was complete. Try again.")
            }
            return 0
        }

        func failUnrepeatable() {
            fail(
                .bodyNotRepeatable,
                isRefused
                    ? "The server did not process the request, and the body cannot be sent again. Make the request again."
                    : "The connection broke, and the body of the request cannot be sent again. Make the request anew.")
        }

        private func failUnanswered() {
            fail(
                .connectionLost,
                "The connection broke before the server answered. It may have acted upon the request, which is therefore "
                    + "not sent again.")
        }
    }
#endif
