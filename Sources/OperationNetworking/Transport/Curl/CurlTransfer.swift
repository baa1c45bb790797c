// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations

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
                task.request.options.timeouts, pauses: task.presentWishes.pauses, now: loop.now)
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
            deadlines.follow(task.presentWishes.pauses)
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
#endif
