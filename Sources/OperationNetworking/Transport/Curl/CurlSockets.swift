// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations
    import Foundation

    /// The sockets that libcurl wants to watch, and the sockets that the kernel watches.
    ///
    /// libcurl changes its interest several times for each request, so the kernel is notified only before the next
    /// wait. The socket of an unused connection stays registered until something arrives.
    struct CurlSockets {
        private struct Entry {
            var wanted: UInt32 = 0
            var registered: UInt32 = 0
            var isChanged = false
            /// Whether we opened the socket, so that we are notified when it is closed.
            var isOurs = false
            /// The local port, or 0 if it was not determined yet.
            var port: UInt16 = 0
        }

        /// The ports of a connection, because connections to different servers may have the same local port.
        ///
        /// The remote port is the port of the request, although an override may lead to another one.
        typealias Ports = (local: UInt16, remote: UInt16)

        static let capacity = 256

        private let poll: Int32
        private var entries: [Entry] = []
        private var changed: [Int32] = []
        private var socketsOfPorts: [UInt16: Set<Int32>] = [:]
        /// Our sockets whose local port was not determined yet.
        private var newSockets: Set<Int32> = []
        private let events = UnsafeMutablePointer<OKPollEvent>.allocate(capacity: capacity)

        init(wakeup: Int32) {
            poll = OKPollMake(wakeup)
        }

        /// Whether the system had a descriptor for the wait.
        var areUsable: Bool { poll >= 0 }

        /// A number that is not lower than the number of watched sockets.
        var count: Int { entries.count }

        func close() {
            if poll >= 0 { Foundation.close(poll) }
            events.deallocate()
        }

        mutating func opened(_ socket: Int32) {
            grow(socket)
            entries[Int(socket)] = Entry(isChanged: entries[Int(socket)].isChanged, isOurs: true)
            newSockets.insert(socket)
        }

        /// Removes a socket before it is closed, because the kernel keeps a socket that a child process still has open.
        mutating func closes(_ socket: Int32) {
            guard socket >= 0, Int(socket) < entries.count else { return }
            if entries[Int(socket)].registered != 0 { OKPollWatch(poll, socket, 0, true) }
            let port = entries[Int(socket)].port
            if port == 0 {
                newSockets.remove(socket)
            } else {
                socketsOfPorts[port]?.remove(socket)
                if socketsOfPorts[port]?.isEmpty == true { socketsOfPorts[port] = nil }
            }
            entries[Int(socket)] = Entry(isChanged: entries[Int(socket)].isChanged)
        }

        /// Returns whether the server ended an unencrypted connection, or sent something before the request.
        ///
        /// libcurl notices the end of a connection but not a reset.
        mutating func isBroken(_ ports: Ports) -> Bool {
            guard let socket = find(ports) else { return false }
            var byte: UInt8 = 0
            let count = recv(socket, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT))
            return count >= 0 || errno != EAGAIN
        }

        /// Returns whether the server ended or reset a connection, even if bytes wait to be read before the end.
        mutating func isClosed(_ ports: Ports) -> Bool {
            guard let socket = find(ports) else { return false }
            return OKIsClosed(socket)
        }

        /// Returns the socket of a connection, or `nil` if it is not certain.
        private mutating func find(_ ports: Ports) -> Int32? {
            guard let sockets = sockets(at: ports.local) else { return nil }
            if sockets.count == 1 { return sockets.first }
            let fitting = sockets.filter { Self.remotePort(of: $0) == ports.remote }
            return fitting.count == 1 ? fitting.first : nil
        }

        /// Returns the socket of a connection, or `nil` if no socket, or more than one, has its local port.
        mutating func onlySocket(_ ports: Ports) -> Int32? {
            guard let sockets = sockets(at: ports.local), sockets.count == 1 else { return nil }
            return sockets.first
        }

        private mutating func sockets(at localPort: UInt16) -> Set<Int32>? {
            guard localPort != 0 else { return nil }
            for socket in newSockets {
                let port = OKLocalPort(socket)
                guard port != 0 else { continue }
                entries[Int(socket)].port = port
                socketsOfPorts[port, default: []].insert(socket)
                newSockets.remove(socket)
            }
            return socketsOfPorts[localPort]
        }

        /// Returns the remote port of a socket, or 0 if the socket is no longer connected.
        private static func remotePort(of socket: Int32) -> UInt16 {
            var address = sockaddr_in6()
            var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
            let result = withUnsafeMutableBytes(of: &address) { bytes in
                bytes.baseAddress.map { getpeername(socket, $0.assumingMemoryBound(to: sockaddr.self), &length) }
            }
            // The port is in the same place in both address families.
            return result == 0 ? UInt16(bigEndian: address.sin6_port) : 0
        }

        private mutating func grow(_ socket: Int32) {
            while entries.count <= Int(socket) { entries.append(Entry()) }
        }

        /// Changes the interest of libcurl in a socket.
        mutating func want(_ socket: Int32, _ interest: Int) {
            guard socket >= 0 else { return }
            grow(socket)
            var mask: UInt32 = 0
            if interest != OKCurlPollRemove {
                if interest & OKCurlPollIn != 0 { mask |= UInt32(OKPollIn) }
                if interest & OKCurlPollOut != 0 { mask |= UInt32(OKPollOut) }
            }
            entries[Int(socket)].wanted = mask
            if mask == 0, !entries[Int(socket)].isOurs {
                // The socket may be closed without notice, so it is removed immediately.
                if entries[Int(socket)].registered != 0 { OKPollWatch(poll, socket, 0, true) }
                entries[Int(socket)].registered = 0
            }
            guard !entries[Int(socket)].isChanged else { return }
            entries[Int(socket)].isChanged = true
            changed.append(socket)
        }

        /// Notifies the kernel of all changes.
        private mutating func flush() {
            for socket in changed {
                var entry = entries[Int(socket)]
                entry.isChanged = false
                let mask = entry.wanted != 0 ? entry.wanted : entry.registered & UInt32(OKPollIn)
                if mask != entry.registered { OKPollWatch(poll, socket, mask, entry.registered != 0) }
                entry.registered = mask
                entries[Int(socket)] = entry
            }
            changed.removeAll(keepingCapacity: true)
        }

        /// Waits for events, indefinitely if `milliseconds` is -1, and returns the number of events.
        mutating func wait(milliseconds: Int32) -> Int {
            flush()
            return Int(OKPollWait(poll, events, Int32(Self.capacity), milliseconds))
        }

        /// Returns the socket of an event of the last wait and its readiness as libcurl encodes it, or `nil` if libcurl
        /// no longer wants the socket.
        mutating func event(_ index: Int) -> (socket: Int32, readiness: Int32)? {
            let (socket, mask) = (events[index].socket, events[index].mask)
            guard socket >= 0, Int(socket) < entries.count, entries[Int(socket)].wanted != 0 else {
                unwanted(socket)
                return nil
            }
            var readiness = 0
            if mask & (UInt32(OKPollIn) | UInt32(OKPollHangUp)) != 0 { readiness |= OKCurlSelectIn }
            if mask & UInt32(OKPollOut) != 0 { readiness |= OKCurlSelectOut }
            if mask & UInt32(OKPollError) != 0 { readiness |= OKCurlSelectError }
            return (socket, Int32(readiness))
        }

        private mutating func unwanted(_ socket: Int32) {
            OKPollWatch(poll, socket, 0, true)
            if socket >= 0, Int(socket) < entries.count { entries[Int(socket)].registered = 0 }
        }

        func isWakeup(_ index: Int, _ wakeup: Int32) -> Bool { events[index].socket == wakeup }
    }
#endif
