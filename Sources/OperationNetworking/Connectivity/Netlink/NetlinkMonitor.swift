// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

#if os(Linux)
    /// A monitor for Linux that uses the kernel's information about network interfaces, addresses and routes.
    ///
    /// The network is available if an interface other than loopback is running and has a route. In addition, an
    /// interface must have an address that is not link-local and that has the same IP version as the route. A tunnel
    /// counts as an interface. In a container, the monitor observes the network of the container. If the kernel does
    /// not provide information, the status is unknown, and ``failure`` contains the reason.
    ///
    /// Each monitor uses one socket and one dispatch queue.
    package final class NetlinkMonitor: ConnectivityMonitor {
        private let board = ConnectivityBoard(.unknown)
        private let socket: NetlinkSocket?
        private let state: Locked<State>
        private let queue = DispatchQueue(label: "OperationKit.NetlinkMonitor")
        // Sendable: created in init, and Dispatch allows canceling it on any thread.
        private nonisolated(unsafe) let source: (any DispatchSourceRead)?

        private struct State {
            var machine: NetlinkMachine
            var overruns = 0
            /// The final error of the system.
            var failure: SystemError?
        }

        /// A reply has at most 32 KiB.
        private static let bufferSize = 1 << 16
        /// The number of datagrams after which the current state is reported, even if more are waiting.
        private static let batch = 256

        /// The error that explains why the monitor has no current network information, or `nil` if there is no error.
        package var failure: String? {
            guard let error = state.withLock({ $0.failure }) else { return nil }
            return "The kernel reports nothing about the network (errno \(error.number)), so its status is unknown. "
                + Self.advice(error.number)
        }

        /// Returns a sentence about how to fix a failure.
        package static func advice(_ number: Int32) -> String {
            switch number {
            case EPERM, EACCES, EAFNOSUPPORT, EPROTONOSUPPORT:
                "Allow the process to use netlink sockets (AF_NETLINK), or use a ProbeMonitor."
            case ENOBUFS, ENOMEM, EMFILE, ENFILE, EAGAIN:
                "The system has no memory or file descriptors left. Create the monitor again, or use a ProbeMonitor."
            default: "Create the monitor again, or use a ProbeMonitor."
            }
        }

        /// Creates a monitor and starts to observe the network, without blocking the calling thread.
        ///
        /// - Parameter need: The route that the monitor requires to report an available network. The default is
        ///   ``RouteNeed/defaultRoute``.
        package init(_ need: RouteNeed = .defaultRoute, receiveBufferSize: Int32? = nil) {
            let socket: NetlinkSocket
            do throws(SystemError) {
                socket = try NetlinkSocket.open(receiveBufferSize: receiveBufferSize)
            } catch {
                state = Locked(State(machine: NetlinkMachine(port: 0, need: need), failure: error))
                (self.socket, self.source) = (nil, nil)
                return
            }
            state = Locked(State(machine: NetlinkMachine(port: socket.port, need: need)))
            let source = DispatchSource.makeReadSource(fileDescriptor: socket.descriptor, queue: queue)
            (self.socket, self.source) = (socket, source)
            source.setEventHandler { [weak self] in self?.drain() }
            source.setCancelHandler { socket.close() }
            // The kernel replies within the call that sends the request, so the state is known immediately. No other
            // thread reads yet.
            if let change = perform(state.withLock { $0.machine.begin() }) { board.write(change) } else { drain() }
            source.activate()
        }

        // The queue closes the socket after the last read.
        deinit { source?.cancel() }

        /// The current state of the network.
        package var connectivity: Connectivity { board.connectivity }

        /// Calls a closure with the current state of the network, and again whenever the state changes.
        ///
        /// The method calls the closure with the current state before it returns. Later calls are made on the monitor's
        /// queue.
        package func observe(_ body: @escaping @Sendable (Connectivity) -> Void) -> ConnectivityObservation {
            board.observe(for: self, body)
        }

        /// The socket, for tests, or nil if there is none.
        package var descriptor: Int32? { socket?.descriptor }
        /// The number of times that messages were lost, for tests.
        package var overruns: Int { state.withLock { $0.overruns } }

        /// Reads until nothing is left, because lost messages can be requested again only then.
        ///
        /// The result is written once, or at intervals if the reading takes a long time.
        private func drain() {
            var buffer = [UInt8](repeating: 0, count: Self.bufferSize)
            var change: Connectivity?
            var count = 0
            while let actions = receive(into: &buffer) {
                if let found = perform(actions) { change = found }
                count += 1
                if count % Self.batch == 0, !hasFailed, let reported = change.take() { board.write(reported) }
            }
            if !hasFailed, let change { board.write(change) }
        }

        private var hasFailed: Bool { state.withLock { $0.failure != nil } }

        /// Returns the actions for the next datagram, or nil if there is no datagram and nothing to do.
        private func receive(into buffer: inout [UInt8]) -> [NetlinkMachine.Action]? {
            guard let socket else { return nil }
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

        /// Performs the actions, and returns the state if one of them reports it.
        private func perform(_ actions: [NetlinkMachine.Action]) -> Connectivity? {
            var change: Connectivity?
            for action in actions {
                switch action {
                case .send(let request):
                    // Everything is requested after the pause.
                    if state.withLock({ $0.machine.isPausing }) { continue }
                    guard let error = socket?.send(request) else { continue }
                    change = .unknown
                    let more = state.withLock { $0.machine.sendingFailed(error.number) }
                    if more.isEmpty { lookAgainLater() } else { _ = perform(more) }
                case .notify(let connectivity): change = connectivity
                case .pause: lookAgainLater()
                case .giveUp(let number): end(SystemError(number))
                }
            }
            return change
        }

        /// Schedules another try after a second, because an immediate one would probably fail too.
        private func lookAgainLater() {
            queue.asyncAfter(deadline: .now() + 1) { [weak self] in
                // After the socket is closed, its descriptor may belong to another file.
                guard let self, source?.isCancelled == false else { return }
                state.withLock { $0.machine.pauseIsOver() }
                drain()
            }
        }

        /// Ends the observation with an error.
        private func end(_ error: SystemError) {
            state.withLock { $0.failure = error }
            board.write(.unknown)
            source?.cancel()
        }
    }

    /// A non-blocking netlink socket, which other programs do not inherit.
    ///
    /// Swift's system module omits the declarations for netlink. The numbers here are the kernel's, which do not
    /// change.
    struct NetlinkSocket: Sendable {
        enum Received {
            case datagram(Int)
            /// The datagram came from another process than the kernel, and is ignored.
            case foreign
            case nothing
            /// Messages were lost because the buffer was full.
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
        /// The port that identifies this socket to the kernel.
        let port: UInt32

        /// Opens a socket that receives changes of links, addresses and routes.
        ///
        /// - Parameter receiveBufferSize: The size of the receive buffer, for tests. The default is nil, which uses
        ///   the system's default size.
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

        /// Joins the groups, and returns the port that the kernel assigned.
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

        /// Sends a request, and returns an error if this fails.
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
                // With MSG_TRUNC, the result is the full length of the datagram, even if the buffer is too small.
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
