// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

#if os(Linux)
    /// Watches the network of a Linux machine, by what the kernel says of its interfaces, addresses and routes.
    ///
    /// There is a way out where an interface other than loopback runs and has a route, and where some interface has an
    /// address of the same version of IP that is more than link-local. A tunnel is an interface as any other, whatever
    /// carries it. Inside a container all that is about the container's own network. Where the kernel cannot be asked,
    /// the state is unknown, and ``failure`` says why.
    ///
    /// It has one socket and one queue, no thread of its own, and asks the kernel when it is made, which does not wait
    /// for anything. Use ``SystemConnectivity/shared`` unless you need other routes to count.
    public final class NetlinkMonitor: ConnectivityMonitor {
        private let board = ConnectivityBoard(.unknown)
        private let feed: NetlinkFeed?
        private let refusal: SystemError?

        /// Why nothing is known, or nothing more; nil if all is well.
        public var failure: ConnectivityMonitorError? {
            guard let error = refusal ?? feed?.failure else { return nil }
            return ConnectivityMonitorError(
                error.number,
                "The kernel does not tell about the network (errno \(error.number)), so it counts as unknown. "
                    + Self.advice(error.number))
        }

        /// What can be done about a failure.
        package static func advice(_ number: Int32) -> String {
            switch number {
            case EPERM, EACCES, EAFNOSUPPORT, EPROTONOSUPPORT:
                "Allow the process netlink sockets (AF_NETLINK), or use a ProbeMonitor."
            case ENOBUFS, ENOMEM, EMFILE, ENFILE, EAGAIN:
                "The system had no room; make the monitor anew, or use a ProbeMonitor."
            default: "Make the monitor anew, or use a ProbeMonitor."
            }
        }

        /// Makes a monitor.
        ///
        /// - Parameter need: Which routes count.
        public convenience init(_ need: RouteNeed = .defaultRoute) {
            self.init(need, receiveBufferSize: nil)
        }

        package init(_ need: RouteNeed, receiveBufferSize: Int32?) {
            do throws(SystemError) {
                let socket = try NetlinkSocket.open(receiveBufferSize: receiveBufferSize)
                feed = NetlinkFeed(socket, need, board)
                refusal = nil
            } catch {
                feed = nil
                refusal = error
            }
        }

        deinit { feed?.close() }

        /// What is known now.
        public var connectivity: Connectivity { board.connectivity }

        /// Calls `body` with what is known now, and whenever that has changed: on the monitor's queue.
        public func observe(_ body: @escaping @Sendable (Connectivity) -> Void) -> ConnectivityObservation {
            board.observe(for: self, body)
        }

        /// The socket, for tests; nil if there is none.
        package var descriptor: Int32? { feed?.descriptor }
        /// How often messages were lost, for tests.
        package var overruns: Int { feed?.overruns ?? 0 }
    }

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

    /// A socket to the part of the kernel that knows the network: never blocking, and not inherited by other programs.
    ///
    /// Swift's module for the system leaves out what belongs to netlink; the numbers are the kernel's, which do not
    /// change.
    struct NetlinkSocket: Sendable {
        enum Received {
            case datagram(Int)
            /// It came from somebody else than the kernel, and is not to be believed.
            case foreign
            case nothing
            /// Messages were lost for want of room.
            case overrun
            case failed(Int32)
        }

        /// `struct sockaddr_nl`.
        private struct Address {
            var family: UInt16 = 16
            var padding: UInt16 = 0
            var port: UInt32 = 0
            var groups: UInt32 = 0

            static let size = socklen_t(12)
        }

        let descriptor: Int32
        /// Who we are to the kernel.
        let port: UInt32

        /// Opens one that is told of changes of links, addresses and routes.
        ///
        /// - Parameter receiveBufferSize: For tests: how much may wait in it; as much as is usual if nil.
        static func open(receiveBufferSize: Int32? = nil) throws(SystemError) -> NetlinkSocket {
            // SOCK_RAW, SOCK_CLOEXEC and SOCK_NONBLOCK.
            let descriptor = socket(16, 3 | 0o2_000_000 | 0o4_000, 0)
            guard descriptor >= 0 else { throw SystemError(errno) }
            if var size = receiveBufferSize {
                _ = setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
            }
            do throws(SystemError) {
                return NetlinkSocket(descriptor: descriptor, port: try join(descriptor))
            } catch {
                Foundation.close(descriptor)
                throw error
            }
        }

        /// Joins the groups, and returns the port that the kernel gave.
        private static func join(_ descriptor: Int32) throws(SystemError) -> UInt32 {
            // Links, addresses and routes of IPv4 and of IPv6.
            var address = Address(groups: 0x1 | 0x10 | 0x40 | 0x100 | 0x400)
            var size = Address.size
            let code = withUnsafeMutableBytes(of: &address) { bytes -> Int32 in
                let place = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self)
                return bind(descriptor, place, size) == 0 ? getsockname(descriptor, place, &size) : -1
            }
            guard code == 0 else { throw SystemError(errno) }
            return address.port
        }

        /// Sends a request; nil if that went well.
        func send(_ request: [UInt8]) -> SystemError? {
            var address = Address()
            let count = withUnsafeMutableBytes(of: &address) { place in
                request.withUnsafeBytes { bytes in
                    sendto(
                        descriptor, bytes.baseAddress, bytes.count, 0,
                        place.baseAddress?.assumingMemoryBound(to: sockaddr.self), Address.size)
                }
            }
            return count == request.count ? nil : SystemError(count < 0 ? errno : EMSGSIZE)
        }

        func receive(into buffer: UnsafeMutableRawBufferPointer) -> Received {
            var (address, size) = (Address(), Address.size)
            while true {
                // The length that it really has, also where there is no room for it.
                let count = withUnsafeMutableBytes(of: &address) { place in
                    recvfrom(
                        descriptor, buffer.baseAddress, buffer.count, Int32(MSG_TRUNC),
                        place.baseAddress?.assumingMemoryBound(to: sockaddr.self), &size)
                }
                if count >= 0 {
                    guard size == Address.size, address.port == 0 else { return .foreign }
                    return count <= buffer.count ? .datagram(count) : .overrun
                }
                switch errno {
                case EINTR: continue
                case EAGAIN: return .nothing
                case ENOBUFS: return .overrun
                default: return .failed(errno)
                }
            }
        }

        func close() { Foundation.close(descriptor) }
    }
#endif

/// Which routes make a machine count as connected, on Linux.
public struct RouteNeed: Sendable, Hashable {
    private enum Kind: Sendable, Hashable { case defaultRoute, anyRoute }

    private let kind: Kind

    /// A route to everywhere: what a machine has that can reach the internet, and a laptop without a cable has not.
    ///
    /// A bridge for containers has none, so it does not count.
    public static let defaultRoute = RouteNeed(kind: .defaultRoute)
    /// Any route that leads out: for networks that lead nowhere else, as in a laboratory or a machine.
    public static let anyRoute = RouteNeed(kind: .anyRoute)
}
