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
        }

        private let socket: NetlinkSocket
        private let board: ConnectivityBoard
        private let state: Locked<State>
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
            source = DispatchSource.makeReadSource(
                fileDescriptor: socket.descriptor, queue: DispatchQueue(label: "OperationKit.NetlinkMonitor"))
            // The kernel answers within the call that asks, so that the state is known at once. Nobody else reads yet.
            let news = perform(state.withLock { $0.machine.begin() })
            if let news { board.write(news) } else { drain() }
            source.setEventHandler { [weak self] in self?.drain() }
            source.setCancelHandler { socket.close() }
            source.activate()
        }

        var descriptor: Int32 { socket.descriptor }
        var overruns: Int { state.withLock { $0.overruns } }

        /// Reads no more; the socket is closed when the queue comes by.
        func close() { source.cancel() }

        /// Reads what is there; what follows from all of it is written once.
        private func drain() {
            var buffer = [UInt8](repeating: 0, count: Self.bufferSize)
            var news: Connectivity?
            for _ in 0..<Self.batch {
                let actions: [NetlinkMachine.Action]
                switch buffer.withUnsafeMutableBytes({ socket.receive(into: $0) }) {
                case .datagram(let count): actions = state.withLock { $0.machine.receive(buffer[..<count]) }
                case .foreign: continue
                case .overrun:
                    state.withLock { state in
                        state.overruns += 1
                        state.machine.messagesWereLost()
                    }
                    continue
                case .nothing:
                    actions = state.withLock { $0.machine.wasReadEmpty() }
                    guard actions.isEmpty else { break }
                    if let news { board.write(news) }
                    return
                case .failed:
                    board.write(.unknown)
                    return close()
                }
                if let found = perform(actions) { news = found }
            }
            // The rest makes the source fire again.
            if let news { board.write(news) }
        }

        /// Sends what is to be sent; returns what is known then, if that is news.
        private func perform(_ actions: [NetlinkMachine.Action]) -> Connectivity? {
            var news: Connectivity?
            for action in actions {
                switch action {
                case .send(let request): if socket.send(request) != nil { news = .unknown }
                case .tell(let connectivity): news = connectivity
                case .giveUp: news = .unknown
                }
            }
            return news
        }
    }
#endif
