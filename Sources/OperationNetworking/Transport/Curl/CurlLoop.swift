// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if os(Linux)
    import CurlDeclarations
    import Glibc

    /// What the thread of a session does: it waits for events on sockets, for moments and for mail, and passes them on.
    ///
    /// Not Sendable on purpose: it is made, used and let go of on that thread.
    final class CurlLoop {
        let configuration: CurlSession.Configuration
        let library: CurlLibrary
        /// Nanoseconds of the monotonic clock, as of the last look.
        private(set) var now = CurlThread.now
        private let engine: CurlEngine
        private var multi: OpaquePointer?
        var sockets: CurlSockets
        /// When libcurl wants to be called.
        private var curlDue: Int64?
        var slots: SlotTable<CurlTask>
        /// When transfers must be looked at, by their numbers.
        var deadlines = DeadlineHeap()
        private var transfers: [CurlTransfer?] = []
        private var freeNumbers: [Int] = []
        private var runningCount = 0
        /// All tasks that were resumed and have not ended.
        private var tasks: [CurlTask] = []
        /// Since when there is nothing to do; nil while there is, and after everything was tidied away.
        private var idleSince: Int64?
        private var namesForgotten: Int64

        init(_ engine: CurlEngine, _ library: CurlLibrary) {
            self.engine = engine
            self.library = library
            configuration = engine.configuration
            sockets = CurlSockets(bell: engine.bellDescriptor)
            namesForgotten = now
            slots = SlotTable(
                SlotTable.Limits(
                    perHost: max(configuration.maximumConnectionsPerHost, 1),
                    total: max(configuration.maximumConnections, 1), lookups: max(configuration.maximumNameLookups, 1)))
            makeMulti()
        }

        private func makeMulti() {
            guard let multi = OKCurl.multiInit() else { return }
            self.multi = multi
            let context = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
            _ = OKCurlMultiSetPointer(multi, Int32(OKCurlMultiOptionSocketData), context)
            _ = OKCurlMultiSetPointer(multi, Int32(OKCurlMultiOptionTimerData), context)
            // 2: several requests over one connection where HTTP/2 is spoken.
            _ = OKCurlMultiSetLong(multi, Int32(OKCurlMultiOptionMultiplexing), 2)
            for (option, value) in [
                (OKCurlMultiOptionMaximumIdleConnections, configuration.maximumConnections),
                (OKCurlMultiOptionMaximumConnections, configuration.maximumConnections),
                (OKCurlMultiOptionMaximumHostConnections, configuration.maximumConnectionsPerHost),
                (OKCurlMultiOptionMaximumStreams, configuration.maximumStreamsPerConnection),
            ] { _ = OKCurlMultiSetLong(multi, Int32(option), max(value, 1)) }
            _ = OKCurlMultiSetSocket(multi) { _, socket, interest, context, _ in
                CurlLoop.of(context)?.sockets.want(socket, Int(interest))
                return 0
            }
            _ = OKCurlMultiSetTimer(multi) { _, milliseconds, context in
                CurlLoop.of(context)?.setCurlTimer(milliseconds)
                return 0
            }
        }

        static func of(_ context: UnsafeMutableRawPointer?) -> CurlLoop? {
            context.map { Unmanaged<CurlLoop>.fromOpaque($0).takeUnretainedValue() }
        }

        private func setCurlTimer(_ milliseconds: Int) {
            curlDue =
                milliseconds < 0 ? nil : milliseconds == 0 ? now : CurlThread.now + Int64(milliseconds) * 1_000_000
        }
    }

    // The turns.
    extension CurlLoop {
        func run() {
            while true {
                let hasWork = doDueWork()
                switch engine.collect(thenSleep: !hasWork, isIdle: tasks.isEmpty) {
                case .tasks(let posted):
                    for task in posted { visit(task) }
                case .close(let posted):
                    if end(posted, closed: true) { return }
                case .finish:
                    if end([], closed: false) { return }
                case nil where !hasWork: waitForEvents()
                case nil: break
                }
            }
        }

        /// True if there may be more at once.
        private func doDueWork() -> Bool {
            now = CurlThread.now
            while let number = deadlines.popDue(at: now) { lookAtDeadline(number) }
            if let due = curlDue, due <= now {
                curlDue = nil
                act(OKCurlSocketTimeout, 0)
            }
            readMessages()
            tidyUpIfIdle()
            // Last, for all of the above may have freed a slot.
            grantSlots()
            return curlDue.map { $0 <= now } ?? false
        }

        private func act(_ socket: Int, _ readiness: Int32) {
            var running: Int32 = 0
            _ = OKCurl.multiAction(multi, Int32(socket), readiness, &running)
        }

        private func waitForEvents() {
            let count = sockets.wait(milliseconds: patience)
            now = CurlThread.now
            for index in 0..<count {
                if sockets.isBell(index, engine.bellDescriptor) {
                    engine.silenceBell()
                } else if let event = sockets.event(index) {
                    act(Int(event.socket), event.readiness)
                }
            }
        }

        /// How long to wait for events: until the next moment at which something is to be done.
        private var patience: Int32 {
            var due = min(curlDue ?? .max, deadlines.nextDue ?? .max)
            if let idleSince { due = min(due, idleSince + lifetime) }
            guard due < .max else { return -1 }
            // Rounded up, for it must not be too early.
            return Int32(min(max((due - CurlThread.now + 999_999) / 1_000_000, 0), 3_600_000))
        }

        private var lifetime: Int64 { min(max(configuration.idleLifetime.saturatedNanoseconds, 0), 1 << 60) }
    }

    // Tasks.
    extension CurlLoop {
        /// Somebody wants something of the task.
        private func visit(_ task: CurlTask) {
            let wishes = task.takeWishes()
            let phase = task.confined.transfer?.phase ?? .waiting
            let action = task.confined.machine.wish(wishes)
            if task.confined.index < 0, !task.confined.machine.isEnded, wishes.isStarted { remember(task) }
            perform(action, task, phase)
            guard !task.confined.machine.isEnded else { return }
            if !wishes.isBraked { task.deliverPending() }
            guard let transfer = task.confined.transfer else { return }
            transfer.releaseStalls(bodyIsReady: wishes.isBodyReady)
            if transfer.problem != nil {
                endFailed(transfer, task)
            } else if transfer.hasWaitedForDecoder {
                end(transfer, code: 0)
            }
        }

        private func perform(_ action: TaskMachine.Action, _ task: CurlTask, _ phase: NetworkError.Phase) {
            switch action {
            case .none: break
            case .enterLine:
                task.confined.place = slots.enter(
                    task, host: task.request.origin.name, isNumeric: task.request.origin.isNumeric)
            case .leaveLine: leaveLine(task)
            case .abandon: release(task)
            case .brake(let brakes):
                if !brakes.contains(.receiving) { task.deliverPending() }
                // What was told may have set a brake again: then there is another visit.
                task.confined.transfer?.apply(brakes)
            case .tellEnd:
                task.deliverPending()
                finish(task, nil)
            case .cancel(let holding):
                if holding == .place { leaveLine(task) }
                if holding == .transfer { release(task) }
                finish(task, NetworkError(code: .cancelled, phase: phase, message: "The request was cancelled."))
            }
        }

        private func leaveLine(_ task: CurlTask) {
            if let place = task.confined.place { _ = slots.leave(place) }
            task.confined.place = nil
        }

        private func remember(_ task: CurlTask) {
            task.confined.index = tasks.count
            task.confined.resumedAt = now
            tasks.append(task)
            idleSince = nil
        }

        /// Tells the end and forgets the task.
        private func finish(_ task: CurlTask, _ error: NetworkError?) {
            forget(task)
            task.tellEnd(error)
        }

        private func forget(_ task: CurlTask) {
            let index = task.confined.index
            guard index >= 0 else { return }
            task.confined.index = -1
            let last = tasks.removeLast()
            if last !== task {
                tasks[index] = last
                last.confined.index = index
            }
        }
    }

    // Transfers.
    extension CurlLoop {
        private func grantSlots() {
            while let grant = slots.next() {
                let task = grant.ticket
                task.confined.place = nil
                guard task.confined.machine.granted() else {
                    slots.release(grant.host)
                    continue
                }
                begin(task, host: grant.host)
            }
        }

        private func begin(_ task: CurlTask, host: Int) {
            guard let transfer = freeTransfer() else {
                slots.release(host)
                _ = task.confined.machine.transferEnded(withFailure: true, isBraked: false)
                return finish(task, CurlEngine.exhausted)
            }
            runningCount += 1
            task.confined.transfer = transfer
            transfer.begin(task, host: host)
            rearm(transfer)
            let code = OKCurl.multiAdd(multi, transfer.handle.easy)
            guard code == 0 else {
                transfer.fail(
                    .transferFailed, "libcurl did not take the request.",
                    .init(
                        domain: "libcurl multi", number: Int(code),
                        text: OKCurl.multiErrorText(code).map { String(cString: $0) } ?? ""))
                return end(transfer, code: 0)
            }
        }

        private func freeTransfer() -> CurlTransfer? {
            let number = freeNumbers.popLast() ?? transfers.count
            if number == transfers.count { transfers.append(nil) }
            if let transfer = transfers[number] { return transfer }
            guard let transfer = CurlTransfer(number, self) else {
                freeNumbers.append(number)
                return nil
            }
            transfers[number] = transfer
            return transfer
        }

        /// Takes the transfer away from the task, wherever it is, and gives it back.
        private func release(_ task: CurlTask, isComplete: Bool = false) {
            guard let transfer = task.confined.transfer else { return }
            task.confined.transfer = nil
            if !isComplete { transfer.handle.forbidsReuse = true }
            _ = OKCurl.multiRemove(multi, transfer.handle.easy)
            deadlines.remove(transfer.number)
            slots.release(transfer.host)
            transfer.end()
            if !library.forgetsHeaders, transfer.hasReceivedHeaders { transfers[transfer.number] = nil }
            freeNumbers.append(transfer.number)
            runningCount -= 1
        }

        private func readMessages() {
            var remaining: Int32 = 0
            while let message = OKCurl.multiReadMessage(multi, &remaining) {
                guard Int(message.pointee.kind) == OKCurlMessageDone else { continue }
                let (easy, code) = (message.pointee.easy, message.pointee.data.result)
                var context: UnsafeMutableRawPointer?
                _ = OKCurlGetPrivate(easy, &context)
                guard let context else { continue }
                end(Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue(), code: code)
            }
        }

        private func end(_ transfer: CurlTransfer, code: Int32) {
            guard let task = transfer.task else { return }
            if transfer.isGivenUp || transfer.isWorthRepeating(after: code), !task.isCancelled {
                return beginAgain(task, transfer)
            }
            guard transfer.mayEnd(code: code) else { return }
            let error = transfer.problem ?? CurlFailure(transfer, code).error
            let metrics = CurlMetrics.collect(transfer, task, now: now)
            let trailers = transfer.trailers
            if transfer.handle.long(OKCurlInfoHTTPVersion) == 3 { raiseLimit(transfer) }
            if error == nil { task.tellSent(transfer.handle.wholeCount) }
            release(task, isComplete: true)
            if error == nil, !trailers.isEmpty { task.tell(.trailers(trailers)) }
            if error != nil { task.confined.pending = Fifo() }
            task.tell(.metrics(metrics))
            if task.confined.machine.transferEnded(withFailure: error != nil, isBraked: task.isBraked) {
                finish(task, error)
            }
        }

        /// The connection was broken, or the task was suspended until just now: nothing was sent, or what may be repeated.
        private func beginAgain(_ task: CurlTask, _ transfer: CurlTransfer) {
            _ = OKCurl.multiRemove(multi, transfer.handle.easy)
            transfer.begin(task, host: transfer.host)
            rearm(transfer)
            _ = OKCurl.multiAdd(multi, transfer.handle.easy)
        }

        private func raiseLimit(_ transfer: CurlTransfer) {
            let streams = max(configuration.maximumStreamsPerConnection, 1)
            let (limit, overflow) = max(configuration.maximumConnectionsPerHost, 1).multipliedReportingOverflow(
                by: streams)
            slots.setLimit(overflow ? .max : limit, host: transfer.host)
        }

        /// The name of the host was looked up.
        func resolved(_ transfer: CurlTransfer) {
            slots.resolved(transfer.host)
        }
    }

    // Time.
    extension CurlLoop {
        /// The moment at which the transfer must be looked at may have become an earlier one; a later one is noticed then.
        func rearm(_ transfer: CurlTransfer) {
            guard let due = transfer.deadlines.next else { return deadlines.remove(transfer.number) }
            if due < deadlines.due(transfer.number) ?? .max { deadlines.set(transfer.number, due: due) }
        }

        private func lookAtDeadline(_ number: Int) {
            guard let transfer = transfers[number], let task = transfer.task else { return }
            guard let limit = transfer.deadlines.exceeded(at: now) else { return rearm(transfer) }
            transfer.fail(limit)
            endFailed(transfer, task)
        }

        /// Ends a transfer of which libcurl does not know that it failed.
        private func endFailed(_ transfer: CurlTransfer, _ task: CurlTask) {
            let error = transfer.problem
            let metrics = CurlMetrics.collect(transfer, task, now: now)
            release(task)
            task.confined.pending = Fifo()
            task.tell(.metrics(metrics))
            _ = task.confined.machine.transferEnded(withFailure: true, isBraked: false)
            finish(task, error)
        }

        /// Closes what was kept for the next request, if none came for long enough.
        private func tidyUpIfIdle() {
            if now - namesForgotten > 50_000_000_000 {
                // libcurl remembers for 60 seconds.
                namesForgotten = now
                slots.forgetNames()
            }
            guard runningCount == 0, tasks.isEmpty, !transfers.isEmpty else { return }
            guard let since = idleSince else { return idleSince = now }
            guard now - since >= lifetime else { return }
            idleSince = nil
            tearDown()
            makeMulti()
        }

        private func tearDown() {
            transfers = []
            freeNumbers = []
            if let multi { _ = OKCurl.multiCleanup(multi) }
            multi = nil
            curlDue = nil
        }
    }

    // The end.
    extension CurlLoop {
        /// Ends everything; false if something came in meanwhile.
        private func end(_ posted: [CurlTask], closed: Bool) -> Bool {
            for task in posted {
                _ = task.takeWishes()
                if task.confined.index < 0, !task.confined.machine.isEnded { remember(task) }
            }
            if closed { endTasks() }
            guard engine.threadEnds() else { return false }
            tearDown()
            sockets.close()
            return true
        }

        private func endTasks() {
            while let task = tasks.last {
                let phase = task.confined.transfer?.phase ?? .waiting
                leaveLine(task)
                release(task)
                _ = task.confined.machine.transferEnded(withFailure: true, isBraked: false)
                let closed = CurlEngine.closed
                finish(task, NetworkError(code: closed.code, phase: phase, message: closed.message))
            }
        }
    }
#endif
