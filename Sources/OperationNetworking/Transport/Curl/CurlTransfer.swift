// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations
    import Foundation
    import OperationCore

    /// A reusable object that carries one transfer after another, with an easy handle of libcurl.
    ///
    /// All methods run on the thread of the session.
    final class CurlTransfer {
        let handle: CurlHandle
        let number: Int
        unowned let loop: CurlLoop

        private(set) var task: CurlTask?
        private(set) var slot = SlotTable<CurlTask>.Slot(host: 0, isAhead: false)
        // Only the session's thread uses the next two properties, and no two accesses to the same property overlap.
        /// The time limits, which continue if libcurl gets the request again.
        @exclusivity(unchecked) var deadlines = TransferDeadlines(.none, now: 0)
        @exclusivity(unchecked) var attempt: Attempt
        /// The time at which the transfer got its slot.
        private(set) var beganAt: Int64 = 0
        /// Whether the name of the host may still be looked up for this transfer.
        private(set) var isLookingUp = false

        /// The state of one attempt of libcurl to send the request.
        struct Attempt {
            /// The time at which libcurl got the request.
            let soughtAt: Int64
            /// The body of the request, or `nil` if the request has none.
            var outlet: BodyOutlet?
            /// The failure on our side, which takes precedence over the result of libcurl.
            fileprivate(set) var problem: NetworkError?
            var parser = ResponseHeadParser()
            /// The number of bytes in the response headers so far.
            var headerCount = 0
            /// The status of the final response, as soon as its headers have arrived.
            var status: Int?
            /// The decompression of the response body, or `nil` if the body is not decompressed.
            var intake: BodyIntake?
            /// The headers of the final response, as soon as they have arrived.
            var head: ResponseHeadParser.Head?
            /// The received length of the body, before decompression.
            var bodyLength: Int64 = 0
            /// Whether a callback instructed libcurl to wait.
            var isReceivingStalled = false
            var isSendingStalled = false
            /// The error number with which the system refused the last socket, or 0 if it created the socket.
            var socketError: Int32 = 0
            /// The number of times that libcurl was about to send the request.
            var requestCount = 0
            /// The ports of the connection over which libcurl was last about to send the request.
            var ports: CurlSockets.Ports = (0, 0)
            /// libcurl's redirect time at that moment, which changes whenever the transfer leaves its connection.
            var redirectTime: Int64 = 0
            /// Whether the transfer is counted in ``CurlLoop/delicateCount``.
            var isDelicate = false
            /// Whether libcurl stopped at our request before anything was sent, because of a suspension or a broken
            /// connection.
            var isGivenUp = false
            /// Whether libcurl was prevented from repeating the request after the response headers arrived.
            ///
            /// libcurl repeats a request after the status 417, or if a stream was reset.
            var isRepetitionRefused = false
            /// Whether libcurl no longer has the transfer, or never took it.
            var isDone = false
        }

        init?(_ number: Int, _ loop: CurlLoop) {
            guard let handle = CurlHandle(loop.configuration, loop.library) else { return nil }
            self.handle = handle
            self.number = number
            self.loop = loop
            attempt = Attempt(soughtAt: loop.now)
            setCallbacks()
        }

        /// Takes a task whose turn has come.
        func begin(_ task: CurlTask, _ slot: SlotTable<CurlTask>.Slot, looksUp: Bool, pauses: PauseClock) {
            self.task = task
            self.slot = slot
            isLookingUp = looksUp
            beganAt = loop.now
            deadlines = TransferDeadlines(task.request.options.timeouts, pauses: pauses, now: loop.now)
            prepare(task)
        }

        /// Begins the same request again.
        func startOver() {
            guard let task else { return }
            deadlines.restart(at: loop.now)
            prepare(task)
        }

        private func prepare(_ task: CurlTask) {
            stopWatching()
            let body = task.request.body
            attempt = Attempt(soughtAt: loop.now, outlet: body.isNone ? nil : BodyOutlet(body))
            handle.prepare(
                task.request, wholeLimit: 64 << 10, wantsNewConnection: task.confined.extras.wantsNewConnection)
            limitConnect()
        }

        /// Releases the task and its data.
        func end() {
            (task, attempt.problem, attempt.head) = (nil, nil, nil)
            (attempt.intake, attempt.outlet) = (nil, nil)
        }

        func fail(_ code: NetworkError.Code, _ message: String, _ underlying: NetworkError.Underlying? = nil) {
            guard attempt.problem == nil else { return }
            handle.forbidsReuse = true
            attempt.problem = NetworkError(code: code, phase: phase, message: message, underlying: underlying)
            attempt.problem?.status = attempt.status
        }

        func fail(_ limit: TransferDeadlines.Limit) {
            let awaitsName = limit == .connect && isLookingUp && !deadlines.isSeeking
            fail(.timedOut, awaitsName ? TransferDeadlines.Limit.lookupMessage : limit.message)
        }

        func fail(_ error: NetworkError) {
            handle.forbidsReuse = true
            if attempt.problem == nil { attempt.problem = error }
        }
    }

    // The progress of the transfer.
    extension CurlTransfer {
        var phase: NetworkError.Phase {
            switch task?.confined.machine.stage {
            case .connecting: .connecting
            case .sending: attempt.outlet?.isComplete == false ? .sending : .awaitingResponse
            // An informational response is not yet the response.
            case .receiving: attempt.status == nil ? .awaitingResponse : .receiving
            case nil: .waiting
            }
        }

        /// Returns whether libcurl may open a socket for an address.
        func mayConnect() -> Bool {
            nameIsKnown()
            guard task != nil else { return false }
            if attempt.status != nil { attempt.isRepetitionRefused = true }
            return attempt.status == nil
        }

        /// Records that a socket was opened.
        func opened(_ descriptor: Int32) {
            loop.sockets.opened(descriptor)
            connects()
        }

        /// Records that a connection has begun, from which its time counts.
        func connects() {
            guard deadlines.isSeeking else { return }
            deadlines.connecting(at: loop.engine.now)
            limitConnect()
            loop.rearm(self)
        }

        /// Gives libcurl as much time for the connection as our own limit, which is the decisive one.
        func limitConnect() {
            let now = loop.engine.now
            // libcurl counts from the time at which it got the request.
            let limit = now - attempt.soughtAt + min(deadlines.connectAllowance(at: now), 1 << 60)
            handle.limitConnect(milliseconds: limit / 1_000_000 + 1)
        }

        /// Records that the name of the host was looked up, or needs no lookup.
        func nameIsKnown() {
            isLookingUp = false
            loop.slots.resolved(slot.host)
        }

        /// Releases the task, while libcurl keeps the transfer until the name of the host was looked up.
        ///
        /// To remove the transfer earlier would block this thread until the lookup ends.
        func outlivesTask() {
            end()
            handle.waitForName()
        }
    }

    // Pausing.
    extension CurlTransfer {
        private var pausedDirections: TaskMachine.PausedDirections {
            task?.confined.machine.pausedDirections ?? []
        }

        /// Pauses or resumes sending and receiving as the task requires.
        func applyPauses() {
            followPauses()
            if !deadlines.isConnected { limitConnect() }
            decodeRest()
            updatePauses()
        }

        /// Adjusts the time limits to the pauses of the task.
        func followPauses() {
            guard let task else { return }
            deadlines.follow(task.currentDemands.pauses)
            loop.rearm(self)
        }

        /// Lets libcurl continue if the transfer was paused and resumed since a callback instructed it to wait.
        func releaseStalls(bodyIsReady: Bool) {
            if bodyIsReady { attempt.isSendingStalled = false }
            decodeRest()
            if bodyIsReady || attempt.isReceivingStalled { updatePauses() }
        }

        private func updatePauses() {
            let holdsBack = pausedDirections.contains(.receiving) || attempt.intake?.hasRest == true
            if !holdsBack { attempt.isReceivingStalled = false }
            var mask = 0
            if holdsBack { mask |= OKCurlPauseReceiving }
            if pausedDirections.contains(.sending) || attempt.isSendingStalled { mask |= OKCurlPauseSending }
            // This call may immediately deliver what libcurl has kept.
            _ = OKCurl.easyPause(handle.easy, Int32(mask))
        }
    }

    // The callbacks of libcurl. The context argument of each leads to the transfer or to the loop.
    extension CurlTransfer {
        private static func of(_ context: UnsafeMutableRawPointer?) -> CurlTransfer? {
            guard let context else { return nil }
            return Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
        }

        func setCallbacks() {
            let context = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
            handle.set(OKCurlOptionPrivate, context)
            setReceiving(context)
            setSending(context)
            setSockets(context)
            // Notices come only while `CurlHandle.enableNotices()` is in effect.
            handle.set(OKCurlOptionDebugData, context)
            _ = OKCurlSetReport(handle.easy) { _, kind, text, count, context in
                guard kind == Int32(OKCurlReportIsText) else { return 0 }
                CurlTransfer.of(context)?.receive(notice: UnsafeRawBufferPointer(start: text, count: count))
                return 0
            }
        }

        private func setReceiving(_ context: UnsafeRawPointer) {
            handle.set(OKCurlOptionHeaderData, context)
            handle.set(OKCurlOptionWriteData, context)
            _ = OKCurlSetData(handle.easy, Int32(OKCurlOptionHeaderFunction)) { data, size, count, context in
                CurlTransfer.of(context)?.receiveHeader(UnsafeRawBufferPointer(start: data, count: size * count)) ?? 0
            }
            _ = OKCurlSetData(handle.easy, Int32(OKCurlOptionWriteFunction)) { data, size, count, context in
                CurlTransfer.of(context)?.receive(UnsafeRawBufferPointer(start: data, count: size * count)) ?? 0
            }
        }

        private func setSending(_ context: UnsafeRawPointer) {
            handle.set(OKCurlOptionReadData, context)
            handle.set(OKCurlOptionSeekData, context)
            _ = OKCurlSetData(handle.easy, Int32(OKCurlOptionReadFunction)) { data, size, count, context in
                let buffer = UnsafeMutableRawBufferPointer(start: data, count: size * count)
                return CurlTransfer.of(context)?.send(into: buffer) ?? OKCurlReadAbort
            }
            _ = OKCurlSetSeek(handle.easy) { context, offset, origin in
                guard origin == SEEK_SET else { return Int32(OKCurlSeekFailed) }
                return Int32(CurlTransfer.of(context)?.rewind(to: offset) ?? OKCurlSeekFailed)
            }
        }

        private func setSockets(_ context: UnsafeRawPointer) {
            handle.set(OKCurlOptionOpenSocketData, context)
            _ = OKCurlSetOpen(handle.easy) { context, _, address in
                guard let address = address?.pointee, let transfer = CurlTransfer.of(context), transfer.mayConnect()
                else { return -1 }
                let kind = address.type | Int32(socket: SOCK_CLOEXEC) | Int32(socket: SOCK_NONBLOCK)
                let descriptor = socket(address.family, kind, address.protocol)
                // libcurl does not learn why there is no socket, and would report that the server does not accept
                // connections.
                transfer.attempt.socketError = descriptor < 0 ? errno : 0
                if descriptor >= 0 { transfer.opened(descriptor) }
                return descriptor
            }
            // A connection may live longer than its transfer, so the loop is notified when it is closed.
            handle.set(OKCurlOptionCloseSocketData, UnsafeRawPointer(Unmanaged.passUnretained(loop).toOpaque()))
            _ = OKCurlSetClose(handle.easy) { context, descriptor in
                CurlLoop.of(context)?.closes(descriptor)
                return close(descriptor)
            }
            handle.set(OKCurlOptionLookupData, context)
            _ = OKCurlSetLookup(handle.easy) { _, _, context in
                CurlTransfer.of(context)?.connects()
                return 0
            }
            handle.set(OKCurlOptionPreRequestData, context)
            _ = OKCurlSetPreRequest(handle.easy) { context, _, _, remotePort, localPort in
                let ports = (UInt16(truncatingIfNeeded: localPort), UInt16(truncatingIfNeeded: remotePort))
                return Int32(CurlTransfer.of(context)?.announceRequest(over: ports) ?? OKCurlPreRequestAbort)
            }
        }
    }

    // Requests that an HTTP/2 server did not process, for instance because it closed a connection gracefully.
    extension CurlTransfer {
        /// Whether the server said that it did not process the request.
        var isRefused: Bool { attempt.headerCount == 0 && loop.refusedStreams?.isRefused(number) == true }

        /// Whether the body of the response is complete, as far as that is known if libcurl does not report its end.
        var isBodyComplete: Bool {
            guard let task, let head = attempt.head else { return false }
            return head.isBody(of: attempt.bodyLength, completeFor: task.request.method)
        }

        /// Whether the response came over HTTP/2 and is complete.
        var isAnswered: Bool {
            attempt.status != nil && attempt.problem == nil && isBodyComplete
                && handle.long(OKCurlInfoHTTPVersion) == 3
        }

        /// Whether libcurl still has the transfer although the response is complete.
        var isAnsweredEarly: Bool {
            task != nil && !attempt.isDone && pausedDirections.isEmpty && !attempt.isReceivingStalled && isAnswered
        }

        /// Records the connection over which the request is about to be sent and, if it matters for this request or for
        /// others, makes libcurl report what it does.
        ///
        /// The connection matters for requests that must not be sent twice. While one is under way, the others listen,
        /// too, because libcurl reports a GOAWAY to whichever transfer of the connection reads it.
        func watch(_ ports: CurlSockets.Ports, _ task: CurlTask) {
            attempt.ports = ports
            // The server's message about an earlier attempt does not apply to this attempt.
            loop.refusedStreams?.ended(number)
            // The most common case returns immediately.
            if loop.delicateCount == 0, task.request.method == "GET" { return }
            guard loop.library.reportsRefusals, task.request.mayMultiplex else { return }
            if !task.request.isIdempotent, !attempt.isDelicate {
                attempt.isDelicate = true
                loop.delicateCount += 1
                if loop.refusedStreams == nil { loop.refusedStreams = RefusedStreams() }
                if loop.delicateCount == 1 { loop.transfers.forEach { $0.joinWatching() } }
            }
            guard loop.delicateCount > 0 else { return }
            attempt.redirectTime = handle.size(OKCurlInfoRedirectTime)
            loop.refusedStreams?.began(number, on: loop.sockets.onlySocket(ports))
            handle.enableNotices()
        }

        /// Begins to listen while the request is under way.
        ///
        /// If libcurl may have repeated the request, it is not known whether it still has the connection with which it
        /// began.
        private func joinWatching() {
            guard let task, !attempt.isDone, attempt.requestCount > 0, task.request.mayMultiplex else { return }
            attempt.redirectTime = 0
            let isWhereItBegan = attempt.requestCount == 1 && hasItsConnection
            loop.refusedStreams?.began(number, on: isWhereItBegan ? loop.sockets.onlySocket(attempt.ports) : nil)
            handle.enableNotices()
        }

        /// Whether the transfer still has the connection over which it was last about to send its request.
        private var hasItsConnection: Bool {
            guard task != nil, !attempt.isDone, attempt.requestCount > 0 else { return false }
            return handle.size(OKCurlInfoRedirectTime) == attempt.redirectTime
        }

        func receive(notice text: UnsafeRawBufferPointer) {
            guard let notice = CurlNotice(text) else { return }
            loop.refusedStreams?.record(notice, of: number) { loop.transfers[$0]?.hasItsConnection ?? false }
        }

        /// Stops listening, because the request has ended or begins again.
        func stopWatching() {
            loop.refusedStreams?.ended(number)
            if exchange(&attempt.isDelicate, with: false) { loop.delicateCount -= 1 }
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
            guard CurlErrorMapping.endsOfStreams.contains(code), let task,
                task.confined.extras.repetitions < Self.maximumRefusals
            else { return false }
            guard task.request.body.canBeSentAgain || attempt.outlet?.isOpen != true else {
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
