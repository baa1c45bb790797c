// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations

    // Requests that an HTTP/2 server did not process, for instance because it closed a connection gracefully.
    extension CurlTransfer {
        /// Whether the server said that it did not process the request.
        var isRefused: Bool { headerCount == 0 && loop.refusedStreams.isRefused(number) }

        /// Whether the response came over HTTP/2 and is complete.
        var isAnswered: Bool {
            status != nil && bodyCount.isComplete && problem == nil && handle.long(OKCurlInfoHTTPVersion) == 3
        }

        /// Whether libcurl still has the transfer although the response is complete.
        var isAnsweredEarly: Bool { task != nil && !isDone && brakes.isEmpty && !isReceivingStalled && isAnswered }

        /// Notes the connection over which the request is about to be sent and, if it matters for this request or for
        /// others, makes libcurl report what it does.
        ///
        /// It matters for requests that must not be sent twice. While one is under way, the others listen, too, because
        /// libcurl reports a GOAWAY to whichever transfer of the connection reads it.
        func watch(_ ports: CurlSockets.Ports, _ task: CurlTask) {
            self.ports = ports
            // What the server said of an earlier attempt is not true of this one.
            loop.refusedStreams.ended(number)
            // The most common case returns immediately.
            if loop.delicateCount == 0, task.request.method == "GET" { return }
            guard loop.library.tellsRefusals, task.request.mayMultiplex else { return }
            if !task.request.isIdempotent, !isDelicate {
                isDelicate = true
                loop.delicateCount += 1
                if loop.delicateCount == 1 { loop.transfers.forEach { $0.joinWatching() } }
            }
            guard loop.delicateCount > 0 else { return }
            redirectTime = handle.size(OKCurlInfoRedirectTime)
            loop.refusedStreams.began(number, on: loop.sockets.onlySocket(ports))
            handle.makeRemarks()
        }

        /// Begins to listen while the request is under way.
        ///
        /// If libcurl may have repeated the request, it is not known whether it still has the connection with which it
        /// began.
        private func joinWatching() {
            guard let task, !isDone, requestCount > 0, task.request.mayMultiplex else { return }
            redirectTime = 0
            let isWhereItBegan = requestCount == 1 && hasItsConnection
            loop.refusedStreams.began(number, on: isWhereItBegan ? loop.sockets.onlySocket(ports) : nil)
            handle.makeRemarks()
        }

        /// Whether the transfer still has the connection over which it was last about to send its request.
        private var hasItsConnection: Bool {
            task != nil && !isDone && requestCount > 0 && handle.size(OKCurlInfoRedirectTime) == redirectTime
        }

        func receive(remark text: UnsafeRawBufferPointer) {
            guard let remark = CurlRemark(text) else { return }
            loop.refusedStreams.note(remark, of: number) { loop.transfers[$0]?.hasItsConnection ?? false }
        }

        /// Stops listening, because the request has ended or begins again.
        func stopWatching() {
            loop.refusedStreams.ended(number)
            if exchange(&isDelicate, with: false) { loop.delicateCount -= 1 }
        }

        /// Marks the last attempt as not sent, if the server did not process the request.
        ///
        /// - Returns: Whether the server did not process the request.
        func takeBackRefused(_ task: CurlTask) -> Bool {
            guard isRefused else { return false }
            task.confined.wasSent = task.confined.extras.wasSentBefore
            return true
        }

        /// Whether the session itself repeats a request that was not processed, after libcurl gave it up.
        func isRefusedWorthRepeating(after code: Int32) -> Bool {
            guard CurlMeaning.endsOfStreams.contains(code), let task,
                task.confined.extras.repetitions < Self.maximumRefusals
            else { return false }
            guard task.request.body.canBeSentAgain || !outlet.isOpen else {
                failUnrepeatable()
                return false
            }
            task.confined.extras.repetitions += 1
            // libcurl may otherwise choose the same connection again.
            task.confined.extras.wantsNewConnection = code == 16
            return takeBackRefused(task)
        }

        /// The number of times that the session repeats such a request, each time over another connection.
        private static var maximumRefusals: Int { 10 }
    }
#endif
