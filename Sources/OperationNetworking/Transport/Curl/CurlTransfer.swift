// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations
    import Foundation
    import OperationCore

    /// A place for transfers, one after the other: an easy handle of libcurl, and what is known of the present transfer.
    ///
    /// Everything here happens on the thread of the session.
    final class CurlTransfer {
        let handle: CurlHandle
        let number: Int
        unowned let loop: CurlLoop

        private(set) var task: CurlTask?
        private(set) var host = 0
        /// What went wrong on our side; it counts more than what libcurl makes of it.
        private(set) var problem: NetworkError?
        var deadlines = TransferDeadlines(.none, now: 0)
        var parser = ResponseHeadParser()
        var intake = BodyIntake()
        var outlet = BodyOutlet(.none)
        var brakes: TaskMachine.Brakes = []
        /// libcurl was told to wait, by the answer of a callback.
        var isReceivingStalled = false
        var isSendingStalled = false
        var status: Int?
        /// How many bytes the heads of the response have so far.
        var headerCount = 0
        /// When it got its slot, and when libcurl was given the request last.
        private(set) var beganAt: Int64 = 0
        private(set) var soughtAt: Int64 = 0
        /// The error number with which the system refused a socket for the last address; 0 if it made one.
        var socketError: Int32 = 0
        /// How often libcurl was about to send the request.
        var requestCount = 0
        /// The ports of the connection over which libcurl was about to send the request last.
        var ports = CurlSockets.Ports(local: 0, remote: 0)
        /// libcurl's redirect time at that moment, which changes whenever the transfer leaves its connection.
        var redirectTime: Int64 = 0
        /// Whether the transfer is counted in ``CurlLoop/delicateCount``.
        var isDelicate = false
        /// Nothing was sent, and libcurl gave it up for us: it was suspended, or the connection was broken.
        var isGivenUp = false
        /// The head of the response is there, and libcurl wanted to ask once more (417, or a stream that was reset), and was
        /// not let.
        var isRepetitionRefused = false
        /// How much of the body came, as it goes over the wire.
        var bodyCount = BodyCount()
        /// The name of the host may be being looked up for it.
        private(set) var isLookingUp = false
        /// libcurl has it no longer, or never took it.
        var isDone = false
        /// Whether it has a slot, and maybe a connection, beyond the limits.
        var isAhead = false

        init?(_ number: Int, _ loop: CurlLoop) {
            guard let handle = CurlHandle(loop.configuration, loop.library) else { return nil }
            self.handle = handle
            self.number = number
            self.loop = loop
            setCallbacks()
        }

        /// Takes on a task, whose turn has come.
        func begin(_ task: CurlTask, host: Int, looksUp: Bool) {
            self.task = task
            self.host = host
            isLookingUp = looksUp
            beganAt = loop.now
            deadlines = TransferDeadlines(
                task.request.options.timeouts, pauses: task.currentDemands.pauses, now: loop.now)
            prepare(task)
        }

        /// The same request once more, from its beginning.
        func beginAgain() {
            guard let task else { return }
            deadlines.restart(at: loop.now)
            prepare(task)
        }

        private func prepare(_ task: CurlTask) {
            stopWatching()
            problem = nil
            soughtAt = loop.now
            parser = ResponseHeadParser()
            intake = BodyIntake()
            outlet = BodyOutlet(task.request.body)
            brakes = []
            (isReceivingStalled, isSendingStalled, isGivenUp) = (false, false, false)
            (isRepetitionRefused, isDone, bodyCount) = (false, false, BodyCount())
            (status, headerCount, requestCount, socketError) = (nil, 0, 0, 0)
            handle.prepare(
                task.request, wholeLimit: 64 << 10, wantsNewConnection: task.confined.extras.wantsNewConnection)
            limitConnect()
        }

        /// Lets go of the task, and of what it brought.
        func end() {
            (task, problem) = (nil, nil)
            intake = BodyIntake()
            outlet = BodyOutlet(.none)
        }

        func fail(_ code: NetworkError.Code, _ message: String, _ underlying: NetworkError.Underlying? = nil) {
            guard problem == nil else { return }
            handle.forbidsReuse = true
            problem = NetworkError(code: code, phase: phase, message: message, underlying: underlying)
            problem?.status = status
        }

        func fail(_ limit: TransferDeadlines.Limit) {
            let awaitsName = limit == .connect && isLookingUp && !deadlines.isSeeking
            fail(.timedOut, awaitsName ? TransferDeadlines.Limit.lookupMessage : limit.message)
        }

        func fail(_ error: NetworkError) {
            handle.forbidsReuse = true
            if problem == nil { problem = error }
        }
    }

    // How far it has come.
    extension CurlTransfer {
        var phase: NetworkError.Phase {
            switch task?.confined.machine.stage {
            case .connecting: .connecting
            case .sending: outlet.isComplete == false ? .sending : .awaitingResponse
            // An informational head is not yet an answer.
            case .receiving: status == nil ? .awaitingResponse : .receiving
            case nil: .waiting
            }
        }

        var responseStatus: Int? { status }
        var hasReceivedHeaders: Bool { headerCount > 0 }
        var isResponseComplete: Bool { status != nil }
        var trailers: HeaderFields { parser.trailers }
        var loopContext: UnsafeRawPointer { UnsafeRawPointer(Unmanaged.passUnretained(loop).toOpaque()) }

        /// libcurl has an address and wants a socket for it; false if it is not to get one.
        func mayConnect() -> Bool {
            nameIsKnown()
            guard task != nil else { return false }
            if status != nil { isRepetitionRefused = true }
            return status == nil
        }

        /// A socket was opened.
        func opened(_ descriptor: Int32) {
            loop.sockets.opened(descriptor)
            connects()
        }

        /// A connection is begun: from now on the time for it counts.
        func connects() {
            guard deadlines.isSeeking else { return }
            deadlines.connecting(at: loop.engine.now)
            limitConnect()
            loop.rearm(self)
        }

        /// Lets libcurl take as long for the connection as our own limit will, which is the one that counts.
        func limitConnect() {
            let now = loop.engine.now
            // libcurl counts from the moment at which it got the request.
            let limit = deadlines.connectAllowance(at: now).map { (now - soughtAt + min($0, 1 << 60)) / 1_000_000 + 1 }
            handle.limitConnect(milliseconds: limit)
        }

        /// The name of the host was looked up, or need not be.
        func nameIsKnown() {
            isLookingUp = false
            loop.resolved(self)
        }

        /// Its task does not want it any more, and libcurl must have it until the name of the host was looked up: to take it
        /// away before that would be to wait for the look-up, with all that this thread has to do.
        func outlivesTask() {
            end()
            handle.waitForName()
        }
    }

    // Brakes.
    extension CurlTransfer {
        /// Holds back what is to be held back, and lets go what is not.
        func apply(_ brakes: TaskMachine.Brakes) {
            self.brakes = brakes
            followPauses()
            if !deadlines.isConnected { limitConnect() }
            decodeRest()
            updatePauses()
        }

        /// Brings the time limits to how long the task was held back.
        func followPauses() {
            guard let task else { return }
            deadlines.follow(task.currentDemands.pauses)
            loop.rearm(self)
        }

        /// The brakes are as they were; but they may have been set and released since libcurl was told to wait.
        func releaseStalls(bodyIsReady: Bool) {
            if bodyIsReady { isSendingStalled = false }
            decodeRest()
            if bodyIsReady || isReceivingStalled { updatePauses() }
        }

        private func updatePauses() {
            let holdsBack = brakes.contains(.receiving) || intake.hasRest
            if !holdsBack { isReceivingStalled = false }
            var mask = 0
            if holdsBack { mask |= OKCurlPauseReceiving }
            if brakes.contains(.sending) || isSendingStalled { mask |= OKCurlPauseSending }
            // It may deliver at once what libcurl had kept.
            _ = OKCurl.easyPause(handle.easy, Int32(mask))
        }
    }

    // The functions that libcurl calls. The last argument of each leads to the transfer, or to the loop.
    extension CurlTransfer {
        private static func of(_ context: UnsafeMutableRawPointer?) -> CurlTransfer? {
            context.map { Unmanaged<CurlTransfer>.fromOpaque($0).takeUnretainedValue() }
        }

        func setCallbacks() {
            let context = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
            handle.set(OKCurlOptionPrivate, context)
            setReceiving(context)
            setSending(context)
            setSockets(context)
            setRemarks(context)
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
                transfer.socketError = descriptor < 0 ? errno : 0
                if descriptor >= 0 { transfer.opened(descriptor) }
                return descriptor
            }
            setClosing()
            handle.set(OKCurlOptionLookupData, context)
            _ = OKCurlSetLookup(handle.easy) { _, _, context in
                CurlTransfer.of(context)?.connects()
                return 0
            }
            handle.set(OKCurlOptionPreRequestData, context)
            _ = OKCurlSetPreRequest(handle.easy) { context, _, _, remotePort, localPort in
                let ports = CurlSockets.Ports(
                    local: UInt16(truncatingIfNeeded: localPort), remote: UInt16(truncatingIfNeeded: remotePort))
                return Int32(CurlTransfer.of(context)?.announceRequest(over: ports) ?? OKCurlPreRequestAbort)
            }
        }

        /// libcurl calls the function only while ``CurlHandle/makeRemarks()`` is in effect.
        private func setRemarks(_ context: UnsafeRawPointer) {
            handle.set(OKCurlOptionDebugData, context)
            _ = OKCurlSetReport(handle.easy) { _, kind, text, count, context in
                guard kind == Int32(OKCurlReportIsText) else { return 0 }
                CurlTransfer.of(context)?.receive(remark: UnsafeRawBufferPointer(start: text, count: count))
                return 0
            }
        }

        /// A connection may live longer than the transfer that made it: the loop is told of its end.
        private func setClosing() {
            handle.set(OKCurlOptionCloseSocketData, loopContext)
            _ = OKCurlSetClose(handle.easy) { context, descriptor in
                CurlLoop.of(context)?.closes(descriptor)
                return close(descriptor)
            }
        }
    }

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
            guard let remark = CurlNotice(text) else { return }
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
            guard CurlErrorMapping.endsOfStreams.contains(code), let task,
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
