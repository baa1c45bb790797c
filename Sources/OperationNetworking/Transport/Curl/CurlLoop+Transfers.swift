// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations
    import OperationCore

    // Transfers, from the grant of a slot to the result of libcurl.
    extension CurlLoop {
        func grantSlots() {
            while let grant = slots.next() {
                let task = grant.ticket
                guard takesSlot(task) else {
                    slots.release(grant.slot, endsLookup: grant.looksUp)
                    continue
                }
                begin(task, grant)
            }
        }

        private func begin(_ task: CurlTask, _ grant: SlotTable<CurlTask>.Grant) {
            guard let transfer = transfers.take(orMake: { CurlTransfer($0, self) }) else {
                slots.release(grant.slot, endsLookup: grant.looksUp)
                return fail(task, CurlEngine.exhausted)
            }
            task.confined.transfer = transfer
            let demands = task.currentDemands
            transfer.begin(task, grant.slot, looksUp: grant.looksUp, pauses: demands.pauses)
            if grant.slot.isAhead { countAhead(1) }
            launch(transfer, task, demands)
        }

        /// Records a change in the number of transfers beyond the limits.
        private func countAhead(_ change: Int) {
            ahead += change
            if multi == nil { multi = CurlMulti(configuration, for: self) }
            multi?.limitConnections(configuration, beyond: ahead)
        }

        /// Gives a transfer to libcurl, and applies the pauses that were ordered before.
        ///
        /// A later change of the demands leads to a visit of the task.
        private func launch(_ transfer: CurlTransfer, _ task: CurlTask, _ demands: TaskDemands) {
            rearm(transfer)
            if multi == nil { multi = CurlMulti(configuration, for: self) }
            if let multi {
                guard let refusal = multi.add(transfer.handle) else {
                    // A suspension abandons the transfer.
                    if demands.isPaused { applyDemands(demands, task) }
                    return
                }
                transfer.fail(.transferFailed, "libcurl did not accept the request.", refusal)
            } else {
                transfer.fail(CurlEngine.exhausted)
            }
            transfer.attempt.isDone = true
            conclude(transfer, task, transfer.attempt.problem)
        }

        /// Begins a transfer again that sent nothing or may be repeated, after its connection broke or it was
        /// suspended.
        private func startOver(_ task: CurlTask, _ transfer: CurlTransfer) {
            multi?.remove(transfer.handle)
            task.confined.machine.restarted()
            transfer.startOver()
            launch(transfer, task, task.currentDemands)
        }

        /// Takes the transfer from a task in any state, and returns it to the pool.
        func release(_ task: CurlTask, isComplete: Bool) {
            guard let transfer = task.confined.transfer else { return }
            task.confined.transfer = nil
            if !isComplete { transfer.handle.forbidsReuse = true }
            deadlines.remove(transfer.number)
            if transfer.isLookingUp, !transfer.attempt.isDone {
                // The transfer keeps its slot, so that the number of lookup threads stays within its limit.
                transfer.outlivesTask()
            } else {
                putBack(transfer)
            }
        }

        private func putBack(_ transfer: CurlTransfer) {
            multi?.remove(transfer.handle)
            slots.release(transfer.slot, endsLookup: transfer.isLookingUp)
            if transfer.slot.isAhead { countAhead(-1) }
            transfer.stopWatching()
            transfer.end()
            transfer.handle.forgetRequest()
            transfers.putBack(transfer.number, isKept: library.forgetsHeaders || transfer.attempt.headerCount == 0)
        }

        /// Ends a transfer with which libcurl is done.
        func end(_ transfer: CurlTransfer, code: Int32) {
            transfer.attempt.isDone = true
            // The transfer has outlived its task.
            guard let task = transfer.task else { return putBack(transfer) }
            let code = transfer.codeOfAnswer(code)
            if transfer.mustStartOver(after: code), !task.isCancelled { return startOver(task, transfer) }
            guard transfer.mayEnd(code: code) else { return }
            var error = transfer.attempt.problem
            if error == nil, code != 0 || transfer.attempt.status == nil {
                error = transfer.error(after: code)
            }
            if transfer.handle.long(OKCurlInfoHTTPVersion) == 3 { raiseLimit(transfer) }
            if error == nil, transfer.attempt.outlet != nil { task.reportSent(transfer.handle.wholeCount) }
            conclude(transfer, task, error)
        }

        /// Reports the results of a transfer, and returns the transfer to the pool.
        ///
        /// The error may not come from libcurl, because OperationKit detects some failures itself.
        func conclude(_ transfer: CurlTransfer, _ task: CurlTask, _ error: NetworkError?) {
            // The time is read again, because libcurl read its times after the loop woke up.
            let metrics = transfer.metrics(of: task, now: engine.now)
            var error = error
            if transfer.takeBackRefused(task), !task.confined.wasSent { error?.isUnsent = true }
            let trailers = transfer.attempt.parser.trailers
            release(task, isComplete: true)
            if error != nil {
                task.dropPending()
            } else if !trailers.isEmpty {
                task.report(.trailers(trailers))
            }
            task.report(.metrics(metrics))
            if task.confined.machine.transferEnded(withFailure: error != nil, isHeldBack: task.isHeldBack) {
                finish(task, error)
            }
        }

        private func raiseLimit(_ transfer: CurlTransfer) {
            let streams = max(configuration.maximumStreamsPerConnection, 1)
            let (limit, overflow) = max(configuration.maximumConnectionsPerHost, 1).multipliedReportingOverflow(
                by: streams)
            slots.setLimit(overflow ? .max : limit, host: transfer.slot.host)
        }

        /// Schedules the next check of a transfer if it is earlier than the scheduled one.
        ///
        /// A later time is noticed at the scheduled check.
        func rearm(_ transfer: CurlTransfer) {
            guard let due = transfer.deadlines.next else { return deadlines.remove(transfer.number) }
            if due < deadlines.due(transfer.number) { deadlines.set(transfer.number, due: due) }
        }

        /// Checks a transfer at its scheduled time.
        func lookAtDeadline(_ number: Int) {
            guard let transfer = transfers[number], let task = transfer.task else { return }
            // The task may have been paused a moment ago.
            transfer.followPauses()
            if transfer.deadlines.isSeeking, !transfer.deadlines.isPaused {
                transfer.deadlines.look(at: now, othersAreServed: othersAreServed(transfer))
                transfer.limitConnect()
            }
            guard let limit = transfer.deadlines.exceeded(at: now) else { return rearm(transfer) }
            transfer.fail(limit)
            conclude(transfer, task, transfer.attempt.problem)
        }

        /// Returns whether other transfers have a connection to the destination of a transfer.
        ///
        /// In that case, the transfer waits for its turn inside libcurl. For example, a server may accept fewer
        /// concurrent requests over one connection than the configuration allows.
        private func othersAreServed(_ transfer: CurlTransfer) -> Bool {
            transfers.contains { $0.slot.host == transfer.slot.host && $0.task != nil && $0.deadlines.isConnected }
        }
    }

    /// A record of the requests that an HTTP/2 server said it did not process.
    ///
    /// A GOAWAY names the last stream that the server may have processed. All streams above it are safe to repeat,
    /// whatever the method (RFC 9113, 8.7). Nothing else that libcurl says or does counts as proof, because it repeats
    /// requests of broken connections in the same way as refused requests.
    package struct RefusedStreams {
        private struct Entry {
            /// The socket of the connection, or `nil` if it is not known.
            var connection: Int32?
            var stream: UInt32?
            var isRefused = false
        }

        /// The entries of transfers, by their numbers.
        private var entries: [Int: Entry] = [:]
        /// The last streams of connections that got a GOAWAY, by their sockets.
        private var lastStreams: [Int32: UInt32] = [:]

        package init() {}

        /// Records that a transfer is about to send its request over a connection, or still has the request there.
        package mutating func began(_ transfer: Int, on connection: Int32?) {
            entries[transfer] = Entry(connection: connection)
        }

        /// Records a message of libcurl about a transfer.
        ///
        /// - Parameter isThere: Returns whether a transfer still has the connection with which it began. Messages about
        ///   a transfer that looks for another connection may be about any connection.
        package mutating func record(_ notice: CurlNotice, of transfer: Int, isThere: (Int) -> Bool) {
            guard let connection = entries[transfer]?.connection, isThere(transfer) else { return }
            switch notice {
            case .stream(let number):
                entries[transfer]?.stream = number
                // nghttp2 sends no new request over a connection after a GOAWAY.
                entries[transfer]?.isRefused = lastStreams[connection] != nil
            case .goAway(let last):
                let last = min(last, lastStreams[connection] ?? .max)
                lastStreams[connection] = last
                for (number, entry) in entries where entry.connection == connection {
                    guard let stream = entry.stream, stream > last, isThere(number) else { continue }
                    entries[number]?.isRefused = true
                }
            }
        }

        /// Returns whether the server said that it did not process the request of a transfer.
        package func isRefused(_ transfer: Int) -> Bool {
            !entries.isEmpty && entries[transfer]?.isRefused == true
        }

        /// Records that a transfer ended or begins again.
        package mutating func ended(_ transfer: Int) {
            if !entries.isEmpty { entries[transfer] = nil }
        }

        /// Records that a connection was closed.
        ///
        /// Another connection may soon get the number of its socket.
        package mutating func closed(_ connection: Int32) {
            lastStreams[connection] = nil
            for (number, entry) in entries where entry.connection == connection { entries[number]?.connection = nil }
        }
    }

    extension CurlTransfer {
        /// The metrics that libcurl measured.
        fileprivate func metrics(of task: CurlTask, now: Int64) -> TransferMetrics {
            var metrics = TransferMetrics()
            // libcurl counts from the time at which it got the request.
            let begun = attempt.soughtAt - task.confined.resumedAt
            func moment(_ info: Int) -> Int64? {
                let microseconds = handle.size(info)
                return microseconds > 0 ? begun + microseconds * 1000 : nil
            }
            metrics.slotGrantedTime = beganAt - task.confined.resumedAt
            metrics.requestBeganTime = moment(OKCurlInfoRequestTime)
            metrics.firstByteTime = moment(OKCurlInfoFirstByteTime)
            metrics.endedTime = now - task.confined.resumedAt
            metrics.pausedNanoseconds = deadlines.paused
            metrics.isConnectionReused = handle.long(OKCurlInfoNewConnections) == 0 && metrics.requestBeganTime != nil
            if !metrics.isConnectionReused {
                metrics.nameResolvedTime = moment(OKCurlInfoNameTime)
                metrics.connectedTime = moment(OKCurlInfoConnectTime)
                metrics.securedTime = moment(OKCurlInfoSecureTime)
            }
            switch handle.long(OKCurlInfoHTTPVersion) {
            case 1: metrics.version = .http1_0
            case 2: metrics.version = .http1_1
            case 3: metrics.version = .http2
            default: break
            }
            if let address = handle.string(OKCurlInfoRemoteAddress), !address.isEmpty {
                let port = handle.long(OKCurlInfoRemotePort)
                metrics.remoteAddress = address.utf8.contains(0x3A) ? "[\(address)]:\(port)" : "\(address):\(port)"
            }
            metrics.bodyBytesSent = handle.size(OKCurlInfoBytesSent)
            metrics.bodyBytesReceived = handle.size(OKCurlInfoBytesReceived)
            metrics.headerBytesReceived = Int64(attempt.headerCount)
            return metrics
        }
    }
#endif
