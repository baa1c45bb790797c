// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations

    // The callbacks of libcurl for sending. Each function returns the result of its callback.
    extension CurlTransfer {
        /// Decides whether libcurl sends the request over a connection that is ready.
        func announceRequest(over ports: CurlSockets.Ports) -> Int {
            guard let task, attempt.problem == nil else { return OKCurlPreRequestAbort }
            let demands = task.currentDemands
            if demands.isCancelled { return OKCurlPreRequestAbort }
            guard attempt.status == nil else {
                attempt.isRepetitionRefused = true
                return OKCurlPreRequestAbort
            }
            if attempt.requestCount == 0, demands.isSuspended || usesBrokenConnection(ports, task) {
                attempt.isGivenUp = true
                return OKCurlPreRequestAbort
            }
            if task.request.body.length == 0, !isBodyEmpty(task) { return OKCurlPreRequestAbort }
            attempt.requestCount += 1
            guard takeBackRefused(task) || attempt.requestCount == 1 || task.request.isIdempotent else {
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

        /// Checks that a body without bytes really has none, because libcurl never reads such a body.
        private func isBodyEmpty(_ task: CurlTask) -> Bool {
            do throws(NetworkError) {
                switch task.request.body.source {
                case .file(let region): try region.check()
                case .stream:
                    try withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { byte throws(NetworkError) in
                        _ = try attempt.outlet?.read(into: byte) { BodyWaker {} }
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
            guard handle.long(OKCurlInfoNewConnections) == 0 else { return false }
            guard task.request.origin.isSecure else { return loop.sockets.isBroken(ports) }
            // If a TLS message precedes the end, libcurl 7.88 does not notice the end. Other requests may still use an
            // HTTP/2 connection, so that libcurl would choose it again.
            let isClosed = loop.sockets.isClosed(ports)
            if isClosed { task.confined.extras.wantsNewConnection = true }
            return isClosed
        }

        /// Gives libcurl the next bytes of the body.
        func send(into buffer: UnsafeMutableRawBufferPointer) -> Int {
            guard let task, attempt.problem == nil else { return OKCurlReadAbort }
            let demands = task.currentDemands
            if demands.isCancelled { return OKCurlReadAbort }
            if demands.isSuspended {
                // With this flag, the next visit of the task lets libcurl continue, even if the suspension is already
                // over.
                attempt.isReceivingStalled = true
                return OKCurlReadPause
            }
            do throws(NetworkError) {
                let portion = try attempt.outlet?.read(into: buffer) {
                    BodyWaker { [weak task] in task?.bodyIsReady() }
                }
                return sent(portion ?? .end, task)
            } catch {
                fail(error)
                return OKCurlReadAbort
            }
        }

        private func sent(_ portion: BodyPortion, _ task: CurlTask) -> Int {
            switch portion {
            case .notYet:
                attempt.isSendingStalled = true
                return OKCurlReadPause
            case .end:
                deadlines.sent(at: loop.now, isLast: true)
                loop.rearm(self)
                return 0
            case .bytes(let count):
                loop.fruitlessRounds = 0
                deadlines.sent(at: loop.now, isLast: attempt.outlet?.isComplete == true)
                loop.rearm(self)
                task.reportSent(attempt.outlet?.count ?? 0, wasUnderWay: true)
                return count
            }
        }

        /// Returns to the beginning of the body, which libcurl sends again over a new connection.
        func rewind(to offset: Int64) -> Int {
            guard let task else { return OKCurlSeekFailed }
            guard attempt.status == nil else {
                attempt.isRepetitionRefused = true
                return OKCurlSeekFailed
            }
            if offset == 0, attempt.outlet?.isOpen != true { return OKCurlSeekDone }
            guard offset == 0, isRefused || task.request.isIdempotent else {
                failUnanswered()
                return OKCurlSeekFailed
            }
            guard task.request.body.canBeSentAgain else {
                failUnrepeatable()
                return OKCurlSeekFailed
            }
            attempt.outlet?.rewind()
            return OKCurlSeekDone
        }

        /// Returns whether to give the request to libcurl again.
        func mustStartOver(after code: Int32) -> Bool {
            guard attempt.problem == nil, let task else { return false }
            if code == 0, !isRefused { return attempt.isGivenUp }
            // libcurl may have waited for a connection in order to repeat a request that must not be sent twice.
            guard attempt.requestCount == 0 || isRefused || task.request.isIdempotent else { return false }
            if code == 28 { followPauses() }
            let isTooEarly = code == 28 && deadlines.outlastsLibcurl(at: loop.engine.now)
            return attempt.isGivenUp || isTooEarly || isWorthRepeating(after: code)
        }

        /// Returns whether a request may be sent over another connection, because an old one broke while the request
        /// was sent.
        ///
        /// libcurl repeats the request itself if it notices the break while it reads, but not while it sends. libcurl
        /// also does not repeat a request over an HTTP/2 connection that accepts no more requests, such as that of a
        /// reloaded server. libcurl even uses such a connection again.
        private func isWorthRepeating(after code: Int32) -> Bool {
            if isRefused { return isRefusedWorthRepeating(after: code) }
            let isOldConnection = (code == 55 || code == 16) && handle.long(OKCurlInfoNewConnections) == 0
            // libcurl has repeated the request as often as it does. libcurl also counts the requests that an HTTP/2
            // server refused.
            let isGivenUpByLibcurl = (code == 55 || code == 56) && attempt.requestCount > Self.maximumRepetitions
            guard isOldConnection || isGivenUpByLibcurl, attempt.headerCount == 0, let task, task.request.isIdempotent,
                task.request.body.canBeSentAgain, task.confined.extras.repetitions < Self.maximumRepetitions
            else { return false }
            task.confined.extras.repetitions += 1
            task.confined.extras.wantsNewConnection = code == 16
            return true
        }

        /// The maximum number of old connections that may break during one request, which is also the limit of libcurl.
        private static var maximumRepetitions: Int { 5 }

        /// Returns the actual result of a transfer that libcurl wanted to repeat itself.
        ///
        /// The response headers have arrived. The body may have been discarded for the repetition (417), or may be
        /// truncated because a stream of HTTP/2 was reset.
        ///
        /// libcurl also reports the end of a stream as a failure if the server ended it before the whole request was
        /// sent. A server may do so after a complete response (RFC 9113, 8.1).
        func codeOfAnswer(_ code: Int32) -> Int32 {
            if code != 0, isAnswered, CurlErrorMapping.endsOfStreams.contains(code) { return 0 }
            guard attempt.isRepetitionRefused else { return code }
            if !isBodyComplete {
                fail(
                    .truncatedBody,
                    attempt.status == 417
                        ? "The server refused the Expect header, and libcurl discarded the body of the response. "
                            + "Turn off expectsContinue and try again."
                        : "The connection or the stream ended before the body was complete. Try again.")
            }
            return 0
        }

        func failUnrepeatable() {
            fail(
                .bodyNotRepeatable,
                isRefused
                    ? "The server did not process the request, and the body cannot be sent again. "
                        + "Create the request again."
                    : "The connection broke, and the body of the request cannot be sent again. "
                        + "Create the request again.")
        }

        private func failUnanswered() {
            fail(
                .connectionLost,
                "The connection broke before the server responded. The server may have processed the request, so it is "
                    + "not sent again.")
        }
    }
#endif
