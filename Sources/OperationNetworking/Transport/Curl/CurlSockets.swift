// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations
    import Foundation

    /// The sockets that libcurl wants to be watched, and what the kernel was told of them.
    ///
    /// libcurl changes its mind several times for each request; the kernel is told only what is left of it before the next
    /// wait. The socket of a connection that nobody uses stays registered until something comes over it.
    struct CurlSockets {
        private struct Entry {
            var wanted: UInt32 = 0
            var registered: UInt32 = 0
            var isChanged = false
            /// We opened it, and are told when it is closed.
            var isOurs = false
            /// The port at our end, once it was asked for.
            var port: UInt16 = 0
        }

        /// What a connection is known by: two to different servers may have one port at our end.
        struct Ports {
            let local: UInt16
            /// The one that was wanted: an override may lead elsewhere.
            let remote: UInt16
        }

        static let capacity = 256

        private let poll: Int32
        private var entries: [Entry] = []
        private var changed: [Int32] = []
        private var socketsOfPorts: [UInt16: Set<Int32>] = [:]
        /// Those of ours whose port was not asked for yet.
        private var newSockets: Set<Int32> = []
        private let events = UnsafeMutablePointer<OKPollEvent>.allocate(capacity: capacity)

        init(bell: Int32) {
            poll = OKPollMake()
            OKPollWatch(poll, bell, UInt32(OKPollIn), false)
        }

        /// Whether the system had a descriptor for them.
        var areUsable: Bool { poll >= 0 }

        /// No fewer than are watched.
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

        /// Before it is closed: a child process may have it for a moment longer, and then the kernel would keep it.
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

        /// Whether a connection without TLS, over which nothing is to come before a request is sent, was ended by the
        /// server, or has something to say.
        ///
        /// libcurl notices an end, but not a reset.
        mutating func isBroken(_ ports: Ports) -> Bool {
            guard let socket = find(ports) else { return false }
            var byte: UInt8 = 0
            let count = recv(socket, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT))
            return count >= 0 || errno != EAGAIN
        }

        /// The socket of a connection; nil if that is not known for sure.
        private mutating func find(_ ports: Ports) -> Int32? {
            guard let sockets = sockets(at: ports.local) else { return nil }
            if sockets.count == 1 { return sockets.first }
            let fitting = sockets.filter { Self.remotePort(of: $0) == ports.remote }
            return fitting.count == 1 ? fitting.first : nil
        }

        /// Returns the socket of a connection; `nil` if no socket, or more than one, has its local port.
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

        /// 0 if it is not connected any more.
        private static func remotePort(of socket: Int32) -> UInt16 {
            var address = sockaddr_in6()
            var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
            let result = withUnsafeMutableBytes(of: &address) { bytes in
                bytes.baseAddress.map { getpeername(socket, $0.assumingMemoryBound(to: sockaddr.self), &length) }
            }
            // Both families have it in the same place.
            return result == 0 ? UInt16(bigEndian: address.sin6_port) : 0
        }

        private mutating func grow(_ socket: Int32) {
            while entries.count <= Int(socket) { entries.append(Entry()) }
        }

        /// libcurl wants something else.
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
                // It may be closed without a word: forget it at once.
                if entries[Int(socket)].registered != 0 { OKPollWatch(poll, socket, 0, true) }
                entries[Int(socket)].registered = 0
            }
            guard !entries[Int(socket)].isChanged else { return }
            entries[Int(socket)].isChanged = true
            changed.append(socket)
        }

        /// Tells the kernel what is wanted.
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

        /// Waits for events, for ever if it is -1 milliseconds, and returns how many there are.
        mutating func wait(milliseconds: Int32) -> Int {
            flush()
            return Int(OKPollWait(poll, events, Int32(Self.capacity), milliseconds))
        }

        /// One of the events of the last wait: the socket, and what it is ready for as libcurl says it; nil if nobody
        /// wants it any more.
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

        func isBell(_ index: Int, _ bell: Int32) -> Bool { events[index].socket == bell }
    }
#endif
