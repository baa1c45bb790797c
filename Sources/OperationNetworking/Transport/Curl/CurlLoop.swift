// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations
    import Foundation

    /// The event loop of a session, which waits for socket events, timers and posted tasks.
    ///
    /// The loop is not `Sendable`, because it is created, used and released on the thread of the session.
    final class CurlLoop {
        let configuration: CurlSession.Configuration
        let library: CurlLibrary
        /// The monotonic time in nanoseconds when it was last read.
        private(set) var now: Int64
        let engine: CurlEngine
        var multi: CurlMulti?
        var sockets: CurlSockets
        var slots: SlotTable<CurlTask>
        /// The number of transfers beyond the limits, which run because others wait for their results.
        var ahead = 0
        var places: CurlDestinations
        /// The requests that a server said it did not process, or `nil` until the first request is watched.
        var refusedStreams: RefusedStreams?
        /// The number of requests under way that must not be sent twice and may share a connection.
        var delicateCount = 0
        /// The number of rounds in succession in which sockets were only ready for writing, and nothing was sent.
        var fruitlessRounds = 0
        /// The times at which transfers must be checked, by their numbers.
        var deadlines = DeadlineHeap()
        var transfers = NumberedPool<CurlTransfer>()
        var tasks = CurlSessionList()
        /// The time at which libcurl wants to be called, or `.max` for never.
        private var curlDue = Int64.max
        private var idleness: IdleWatch
        private let deferredWork: SessionDeferredWork
        private var lastForgotNames: Int64

        init(_ engine: CurlEngine, _ library: CurlLibrary) {
            self.engine = engine
            self.library = library
            configuration = engine.configuration
            now = engine.now
            deferredWork = SessionDeferredWork { engine.now }
            sockets = CurlSockets(wakeup: engine.wakeup.descriptor)
            lastForgotNames = now
            idleness = IdleWatch(lifetime: configuration.idleLifetime)
            slots = SlotTable(
                perHost: max(configuration.maximumConnectionsPerHost, 1),
                total: max(configuration.maximumConnections, 1), lookups: max(configuration.maximumNameLookups, 1))
            places = CurlDestinations(configuration) { name in getenv(name).map { String(cString: $0) } }
            multi = CurlMulti(configuration, for: self)
        }

        static func of(_ context: UnsafeMutableRawPointer?) -> CurlLoop? {
            guard let context else { return nil }
            return Unmanaged<CurlLoop>.fromOpaque(context).takeUnretainedValue()
        }

        func setCurlTimer(_ milliseconds: Int) {
            curlDue =
                milliseconds < 0 ? .max : milliseconds == 0 ? now : engine.now + Int64(milliseconds) * 1_000_000
        }
    }

    // The iterations of the loop.
    extension CurlLoop {
        /// Runs until the session is closed, or until the session was released and its last task has ended.
        func run() {
            if sockets.areUsable, multi != nil { takeTurns() } else { refuseAll() }
            deferredWork.performAll()
            tearDown()
            sockets.close()
        }

        private func takeTurns() {
            while true {
                let hasWork = doDueWork()
                deferredWork.performIfDue()
                let sleeps = !hasWork && !deferredWork.hasItems
                switch engine.collect(thenSleep: sleeps, isIdle: tasks.isEmpty) {
                case .tasks(let posted):
                    for task in posted { visit(task) }
                case .close(let posted): return endAll(posted, CurlEngine.closed)
                case .finish: return
                case nil where sleeps: takeEvents(milliseconds: pollTimeout)
                // Work for other threads is deferred only while there is something else to do.
                case nil where !hasWork:
                    if tasks.isEmpty || takeEvents(milliseconds: 0) == 0 { deferredWork.performAll() }
                case nil: break
                }
            }
        }

        /// Ends posted tasks with an error, because the system has no descriptor or memory for a loop.
        ///
        /// Later tasks may have more success.
        private func refuseAll() {
            while let instruction = engine.collect(thenSleep: false, isIdle: true) {
                switch instruction {
                case .tasks(let posted): endAll(posted, CurlEngine.exhausted)
                case .close(let posted): return endAll(posted, CurlEngine.closed)
                case .finish: return
                }
            }
        }

        /// Does the work that is due, and returns whether more may be due immediately.
        private func doDueWork() -> Bool {
            now = engine.now
            catchUpIfLate()
            while let number = deadlines.popDue(at: now) { lookAtDeadline(number) }
            if curlDue <= now {
                curlDue = .max
                multi?.act(Int32(OKCurlSocketTimeout), 0)
            }
            while let (transfer, code) = multi?.nextEnded() { end(transfer, code: code) }
            tidyUpIfIdle()
            // Grant slots last, because all of the above may have released a slot.
            grantSlots()
            return curlDue <= now
        }

        /// Reads the sockets before any time limit is checked, if this thread is late.
        ///
        /// The machine may be busy, the process may have been stopped, or a receiver may have taken long. Data that
        /// arrived in the meantime counts before the time limits.
        private func catchUpIfLate() {
            guard min(deadlines.nextDue, curlDue.addingSaturated(Self.lateness)) <= now else { return }
            // One wait returns a limited number of sockets, and the next wait returns the others first. The number of
            // waits is limited, because there may always be more events.
            var looks = sockets.count / CurlSockets.capacity + 1
            while takeEvents(milliseconds: 0) == CurlSockets.capacity, looks > 0 { looks -= 1 }
        }

        /// The delay in nanoseconds up to which libcurl may be called without a look at the sockets.
        private static let lateness: Int64 = 5_000_000

        @discardableResult
        private func takeEvents(milliseconds: Int32) -> Int {
            let count = sockets.wait(milliseconds: milliseconds)
            now = engine.now
            var isFruitless = count > 0
            for index in 0..<count {
                if sockets.isWakeup(index, engine.wakeup.descriptor) {
                    isFruitless = false
                } else if let event = sockets.event(index) {
                    if event.readiness != Int32(OKCurlSelectOut) { isFruitless = false }
                    multi?.act(event.socket, event.readiness)
                }
            }
            fruitlessRounds = isFruitless ? fruitlessRounds + 1 : 0
            if fruitlessRounds >= Self.fruitlessLimit { stopSpinning() }
            return count
        }

        /// A number of rounds without progress that no transfer needs.
        private static let fruitlessLimit = 1000

        /// Ends the transfers that make libcurl ask again and again whether a socket is ready for writing.
        ///
        /// libcurl 7.88 does so if an HTTP/2 server responded without reading the body of the request and then reset
        /// the stream. The response is complete. In any other case the loop slows down until a time limit ends the
        /// transfer.
        private func stopSpinning() {
            var answered: [CurlTransfer] = []
            transfers.forEach { if $0.isAnsweredEarly { answered.append($0) } }
            if answered.isEmpty {
                usleep(1000)
            } else {
                fruitlessRounds = 0
                for transfer in answered { end(transfer, code: 0) }
            }
        }

        /// The time in milliseconds to wait for events, which ends when the next work is due.
        private var pollTimeout: Int32 {
            let due = min(curlDue, deadlines.nextDue, idleness.due)
            guard due < .max else { return -1 }
            // The time is rounded up, because the loop must not wake too early.
            return Int32(min(max((due - engine.now + 999_999) / 1_000_000, 0), 3_600_000))
        }
    }

    // Connections and tasks.
    extension CurlLoop {
        /// Handles a connection that is about to be closed.
        func closes(_ socket: Int32) {
            sockets.closes(socket)
            refusedStreams?.closed(socket)
        }

        /// Records a task that was resumed.
        func remember(_ task: CurlTask) {
            tasks.add(task, now: now)
            idleness.wake()
        }

        /// Closes the connections if there was no request for long enough.
        private func tidyUpIfIdle() {
            if now - lastForgotNames > 50_000_000_000 {
                // libcurl keeps the results of lookups for 60 seconds.
                lastForgotNames = now
                slots.forgetNames()
            }
            guard tasks.isEmpty, transfers.usedCount == 0, !transfers.isEmpty, idleness.look(at: now) else { return }
            tearDown()
            multi = CurlMulti(configuration, for: self)
        }

        private func tearDown() {
            transfers.removeAll()
            multi = nil
            curlDue = .max
        }

        /// Ends all tasks, including those that were just posted.
        private func endAll(_ posted: [CurlTask], _ reason: NetworkError) {
            for task in posted {
                _ = task.takeDemands()
                if !task.confined.machine.isEnded { remember(task) }
            }
            while let task = tasks.last { end(task, because: reason) }
        }
    }

    // The demands on tasks, and the ends of tasks.
    extension CurlLoop {
        /// Applies the demands on a task.
        func visit(_ task: CurlTask) {
            let demands = task.takeDemands()
            if !task.confined.machine.isEnded, demands.isStarted { remember(task) }
            applyDemands(demands, task)
            guard !task.confined.machine.isEnded else { return }
            task.deliverPending()
            guard let transfer = task.confined.transfer else { return }
            // A pause may have begun and ended in the meantime.
            transfer.followPauses()
            transfer.releaseStalls(bodyIsReady: demands.isBodyReady)
            if transfer.attempt.problem != nil {
                conclude(transfer, task, transfer.attempt.problem)
            } else if transfer.hasWaitedForDecoder {
                end(transfer, code: 0)
            }
        }

        /// Ends a task in any state.
        func end(_ task: CurlTask, because reason: NetworkError) {
            let phase = phase(of: task)
            leaveQueue(task)
            abandon(task)
            fail(task, NetworkError(code: reason.code, phase: phase, message: reason.message))
        }

        /// Ends a task that no longer has a transfer with an error, even if events wait.
        func fail(_ task: CurlTask, _ error: NetworkError?) {
            _ = task.confined.machine.transferEnded(withFailure: true, isHeldBack: false)
            finish(task, error)
        }
    }

    // The actions of the state machines of tasks.
    extension CurlLoop: TaskHost {
        typealias Carrier = CurlEngine

        /// Returns the queue for the destination of the request.
        func line(of request: NetworkRequest) -> (name: String, isNumeric: Bool) {
            let place = places.place(of: request.origin)
            return (place.name, place.isNumeric)
        }

        func phase(of task: CurlTask) -> NetworkError.Phase {
            task.confined.transfer?.phase ?? task.confined.machine.restingPhase
        }

        func abandon(_ task: CurlTask) { release(task, isComplete: false) }

        func apply(_ pausedDirections: TaskMachine.PausedDirections, to task: CurlTask) {
            if !pausedDirections.contains(.receiving) { task.deliverPending() }
            // A delivered event may have paused delivery again, which leads to another visit.
            task.confined.transfer?.applyPauses()
        }

        func forget(_ task: CurlTask) { tasks.remove(task) }
    }

    /// The destinations of connections, counted in the same way as in libcurl.
    ///
    /// libcurl limits the connections to each destination, whatever the hosts of the requests are. The slots must be
    /// counted in the same way, because a transfer that waits inside libcurl does not know that it waits.
    ///
    /// A destination is a host and a port. If a proxy receives the request unchanged (without TLS and without another
    /// address), they are those of the proxy. Otherwise the port is that of the URL, and the host is that of the URL or
    /// the one that replaces it. A Unix-domain socket is one destination, because it is one server. Even so, libcurl
    /// reuses a connection only for the host for which it was made.
    package struct CurlDestinations {
        package struct Place: Hashable, Sendable {
            package let name: String
            /// Whether no name must be looked up.
            package let isNumeric: Bool
        }

        /// The maximum number of remembered destinations.
        private static let capacity = 1_024

        private let unixSocketPath: String?
        private let overrides: [AddressOverride]
        private let plainProxy: ProxyAddress?
        private let secureProxy: ProxyAddress?
        private let exceptions: ProxyExceptions
        private var known: [String: Place] = [:]

        /// Reads the configuration and the environment, which libcurl reads again for each connection.
        package init(_ configuration: CurlSession.Configuration, environment: (String) -> String?) {
            unixSocketPath = configuration.unixSocketPath
            overrides = AddressOverride.inOrder(configuration.addressOverrides)
            func first(_ names: String...) -> String? {
                names.compactMap { environment($0) }.first { !$0.isEmpty }
            }
            switch configuration.proxy.kind {
            case .none:
                (plainProxy, secureProxy, exceptions) = (nil, nil, ProxyExceptions(""))
            case .explicit(let url, _, _, let hosts):
                plainProxy = ProxyAddress(url)
                (secureProxy, exceptions) = (plainProxy, ProxyExceptions(hosts))
            case .environment:
                plainProxy = first("http_proxy", "all_proxy", "ALL_PROXY").flatMap { ProxyAddress($0) }
                secureProxy = first("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY").flatMap { ProxyAddress($0) }
                exceptions = ProxyExceptions(first("no_proxy", "NO_PROXY") ?? "")
            }
        }

        /// Returns the destination of the connection for a request.
        package mutating func place(of origin: RequestOrigin) -> Place {
            if let place = known[origin.name] { return place }
            let place = findPlace(of: origin)
            if known.count >= Self.capacity { known = [:] }
            known[origin.name] = place
            return place
        }

        private func findPlace(of origin: RequestOrigin) -> Place {
            if let unixSocketPath { return Place(name: unixSocketPath, isNumeric: true) }
            let (host, zone, port) = origin.place
            let override = overrides.lazy.compactMap { $0.target(of: host, port: port) }.first
            let counted = override?.host ?? host + (zone.map { "%\($0)" } ?? "")
            guard let proxy = origin.isSecure ? secureProxy : plainProxy, !exceptions.contain(host) else {
                return Place(name: "\(counted):\(port)", isNumeric: Self.isNumeric(counted))
            }
            let isElsewhere = override?.host ?? host != host || override?.port ?? port != port
            let isTunnel = origin.isSecure || !proxy.takesRequests || isElsewhere
            return Place(
                name: isTunnel ? "\(counted):\(port)" : "\(proxy.host):\(proxy.port)",
                isNumeric: Self.isNumeric(proxy.host))
        }

        private static func isNumeric(_ host: String) -> Bool {
            host.utf8.contains(0x3A) || host.utf8.allSatisfy { (0x30...0x39).contains($0) || $0 == 0x2E }
        }
    }
#endif
