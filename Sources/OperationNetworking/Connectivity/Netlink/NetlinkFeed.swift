// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if os(Linux)
    import Dispatch
    import OperationCore

    /// Reads the socket on a queue of its own, and writes on the board what comes of it: the shell of
    /// ``NetlinkMachine``.
    final class NetlinkFeed: Sendable {
        private struct State {
            var machine: NetlinkMachine
            var overruns = 0
            /// With which number the system refused, for good.
            var failure: SystemError?
        }

        private let socket: NetlinkSocket
        private let board: ConnectivityBoard
        private let state: Locked<State>
        private let queue = DispatchQueue(label: "OperationKit.NetlinkMonitor")
        // Sendable: made in init, and Dispatch lets it be cancelled from any thread.
        private nonisolated(unsafe) let source: any DispatchSourceRead

        /// An answer has at most 32 KiB.
        private static let bufferSize = 1 << 16
        /// After so many datagrams what is known is told, whatever else waits.
        private static let batch = 256

        init(_ socket: NetlinkSocket, _ need: RouteNeed, _ board: ConnectivityBoard) {
            self.socket = socket
            self.board = board
            state = Locked(State(machine: NetlinkMachine(port: socket.port, need: need)))
            source = DispatchSource.makeReadSource(fileDescriptor: socket.descriptor, queue: queue)
            source.setEventHandler { [weak self] in self?.drain() }
            source.setCancelHandler { socket.close() }
            // The kernel answers within the call that asks, so that the state is known at once. Nobody else reads yet.
            if let news = perform(state.withLock { $0.machine.begin() }) { board.write(news) } else { drain() }
            source.activate()
        }

        var descriptor: Int32 { socket.descriptor }
        var overruns: Int { state.withLock { $0.overruns } }
        var failure: SystemError? { state.withLock { $0.failure } }

        /// Reads no more; the socket is closed when the queue comes by.
        func close() { source.cancel() }

        /// Reads until there is nothing more, for only then may be asked again what was lost; what follows is written
        /// once, or every now and then if that takes long.
        private func drain() {
            var buffer = [UInt8](repeating: 0, count: Self.bufferSize)
            var news: Connectivity?
            var count = 0
            while let actions = receive(into: &buffer) {
                if let found = perform(actions) { news = found }
                count += 1
                if count % Self.batch == 0, failure == nil, let told = news.take() { board.write(told) }
            }
            if failure == nil, let news { board.write(news) }
        }

        /// What follows from the next datagram; nil if there is none, and nothing to be done.
        private func receive(into buffer: inout [UInt8]) -> [NetlinkMachine.Action]? {
            switch buffer.withUnsafeMutableBytes({ socket.receive(into: $0) }) {
            case .datagram(let count): return state.withLock { $0.machine.receive(buffer[..<count]) }
            case .foreign: return []
            case .overrun:
                state.withLock { state in
                    state.overruns += 1
                    state.machine.messagesWereLost()
                }
                return []
            case .nothing:
                let actions = state.withLock { $0.machine.wasReadEmpty() }
                return actions.isEmpty ? nil : actions
            case .failed(let number):
                end(SystemError(number))
                return nil
            }
        }

        /// Sends what is to be sent; returns what is known then, if that is news.
        private func perform(_ actions: [NetlinkMachine.Action]) -> Connectivity? {
            var news: Connectivity?
            for action in actions {
                switch action {
                case .send(let request):
                    // After the pause all is asked for.
                    if state.withLock({ $0.machine.isPausing }) { continue }
                    guard let error = socket.send(request) else { continue }
                    news = .unknown
                    let more = state.withLock { $0.machine.sendingFailed(error.number) }
                    if more.isEmpty { lookAgainLater() } else { _ = perform(more) }
                case .tell(let connectivity): news = connectivity
                case .pause: lookAgainLater()
                case .giveUp(let number): end(SystemError(number))
                }
            }
            return news
        }

        /// What could not be sent now, or be told at rest, will hardly be a moment later: it is tried once in a second.
        private func lookAgainLater() {
            queue.asyncAfter(deadline: .now() + 1) { [weak self] in
                // Once it was closed, the number may be another's.
                guard let self, !source.isCancelled else { return }
                state.withLock { $0.machine.pauseIsOver() }
                drain()
            }
        }

        /// Nothing more will be known.
        private func end(_ error: SystemError) {
            state.withLock { $0.failure = error }
            board.write(.unknown)
            close()
        }
    }
#endif
