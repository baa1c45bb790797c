// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A parser for messages of the kernel, which checks each length before it uses it.
package enum NetlinkParser {
    /// The content of a datagram.
    package struct Result: Sendable, Equatable {
        package var messages: [NetlinkMessage] = []
        /// Whether a part of the datagram was malformed, so that its messages are incomplete.
        package var isDamaged = false
    }

    private static let headerSize = 16

    package static func parse(_ datagram: ArraySlice<UInt8>) -> Result {
        var result = Result()
        var rest = NetlinkBytes(bytes: datagram)
        while rest.count > 0 {
            guard let length = rest.number(UInt32.self, at: 0), length >= headerSize, length <= rest.count,
                let whole = rest.part(from: 0, count: Int(length)), let message = message(whole)
            else {
                result.isDamaged = true
                return result
            }
            result.messages.append(message)
            // The last message may lack the padding to a multiple of four.
            rest = rest.rest(from: (Int(length) + 3) & ~3) ?? NetlinkBytes(bytes: [])
        }
        return result
    }

    /// Returns a message, or nil if it is malformed.
    private static func message(_ bytes: NetlinkBytes) -> NetlinkMessage? {
        guard let type = bytes.number(UInt16.self, at: 4), let flags = bytes.number(UInt16.self, at: 6),
            let sequence = bytes.number(UInt32.self, at: 8), let port = bytes.number(UInt32.self, at: 12),
            let body = bytes.rest(from: headerSize), let content = content(of: type, body)
        else { return nil }
        return NetlinkMessage(sequence: sequence, port: port, isInconsistent: flags & 0x10 != 0, content: content)
    }

    private static func content(of type: UInt16, _ body: NetlinkBytes) -> NetlinkMessage.Content? {
        switch type {
        case 2: return body.number(Int32.self, at: 0).map { .refused($0 == .min ? .max : abs($0)) }
        // The end of a reply may contain the error that ended the reply early.
        case 3:
            guard let number = body.number(Int32.self, at: 0), number < 0 else { return .done }
            return .refused(number == .min ? .max : -number)
        case 4: return .lost
        case 16, 17: return link(body, isGone: type == 17)
        case 20, 21: return address(body, isGone: type == 21)
        case 24, 25: return route(body, isGone: type == 25)
        default: return .other
        }
    }

    /// `struct ifinfomsg`.
    private static func link(_ body: NetlinkBytes, isGone: Bool) -> NetlinkMessage.Content? {
        guard let family = body.number(UInt8.self, at: 0), let hardware = body.number(UInt16.self, at: 2),
            let index = body.number(Int32.self, at: 4), let flags = body.number(UInt32.self, at: 8)
        else { return nil }
        // A bridge reports its ports in messages of the same form.
        guard family == 0 else { return .other }
        var name = ""
        let isWhole = eachAttribute(body, from: 16) { type, value in
            if type == 3 { name = value.text }
            return true
        }
        guard isWhole else { return nil }
        if isGone { return .linkGone(index) }
        return .link(NetworkLink(index: index, name: name, hardware: hardware, flags: flags))
    }

    /// `struct ifaddrmsg`.
    private static func address(_ body: NetlinkBytes, isGone: Bool) -> NetlinkMessage.Content? {
        guard let number = body.number(UInt8.self, at: 0), let prefixLength = body.number(UInt8.self, at: 1),
            let shortFlags = body.number(UInt8.self, at: 2), let scope = body.number(UInt8.self, at: 3),
            let link = body.number(Int32.self, at: 4)
        else { return nil }
        guard let family = NetworkFamily(rawValue: number) else { return .other }
        var (flags, own, far): (UInt32, [UInt8]?, [UInt8]?) = (UInt32(shortFlags), nil, nil)
        let isWhole = eachAttribute(body, from: 8) { type, value in
            switch type {
            // In a point-to-point link, the first address is the peer's.
            case 1: far = value.array
            case 2: own = value.array
            case 8:
                guard let long = value.number(UInt32.self, at: 0) else { return false }
                flags = long
            default: break
            }
            return true
        }
        guard isWhole, let bytes = own ?? far, bytes.count == family.addressSize else { return nil }
        let key = NetworkAddress.Key(link: link, family: family, bytes: bytes, prefixLength: prefixLength)
        let address = NetworkAddress(key: key, flags: flags, scope: scope)
        return isGone ? .addressGone(address) : .address(address)
    }

    /// `struct rtmsg`.
    private static func route(_ body: NetlinkBytes, isGone: Bool) -> NetlinkMessage.Content? {
        guard let number = body.number(UInt8.self, at: 0), let prefixLength = body.number(UInt8.self, at: 1),
            let table = body.number(UInt8.self, at: 4), let type = body.number(UInt8.self, at: 7),
            let flags = body.number(UInt32.self, at: 8)
        else { return nil }
        guard let family = NetworkFamily(rawValue: number) else { return .other }
        var route = NetworkRoute(
            family: family, prefixLength: prefixLength, table: UInt32(table), type: type, flags: flags, priority: 0,
            links: [])
        let isWhole = eachAttribute(body, from: 12) { type, value in
            switch type {
            case 4:
                guard let link = value.number(Int32.self, at: 0) else { return false }
                route.links.append(link)
            case 6:
                guard let priority = value.number(UInt32.self, at: 0) else { return false }
                route.priority = priority
            case 9: return addHops(value, to: &route)
            case 15:
                guard let table = value.number(UInt32.self, at: 0) else { return false }
                route.table = table
            default: break
            }
            return true
        }
        guard isWhole else { return nil }
        return isGone ? .routeGone(route) : .route(route)
    }

    /// Parses a list of `struct rtnexthop`, in which dead hops do not count.
    private static func addHops(_ list: NetlinkBytes, to route: inout NetworkRoute) -> Bool {
        var rest = list
        var isAlive = false
        while rest.count > 0 {
            guard let length = rest.number(UInt16.self, at: 0), length >= 8, length <= rest.count,
                let flags = rest.number(UInt8.self, at: 2), let link = rest.number(Int32.self, at: 4)
            else { return false }
            if flags & 0x11 == 0 {
                route.links.append(link)
                isAlive = true
            }
            rest = rest.rest(from: (Int(length) + 3) & ~3) ?? NetlinkBytes(bytes: [])
        }
        if !isAlive { route.flags |= 0x1 }
        return true
    }

    /// Enumerates a list of `struct rtattr`, and returns false if a length is wrong or `body` returns false.
    private static func eachAttribute(
        _ bytes: NetlinkBytes, from start: Int, _ body: (UInt16, NetlinkBytes) -> Bool
    ) -> Bool {
        guard var rest = bytes.rest(from: start) else { return false }
        // A rest that is shorter than an attribute's header is padding.
        while rest.count >= 4 {
            guard let length = rest.number(UInt16.self, at: 0), length >= 4, length <= rest.count,
                let type = rest.number(UInt16.self, at: 2), let value = rest.part(from: 4, count: Int(length) - 4),
                body(type & 0x3fff, value)
            else { return false }
            rest = rest.rest(from: (Int(length) + 3) & ~3) ?? NetlinkBytes(bytes: [])
        }
        return true
    }
}

/// A message of the kernel about the network, with the needed content (`netlink(7)`, `rtnetlink(7)`).
package struct NetlinkMessage: Sendable, Equatable {
    package enum Content: Sendable, Equatable {
        case link(NetworkLink)
        case linkGone(Int32)
        case address(NetworkAddress)
        case addressGone(NetworkAddress)
        case route(NetworkRoute)
        case routeGone(NetworkRoute)
        /// The end of a reply.
        case done
        /// A failed request with an error number, or an acknowledgement with 0.
        case refused(Int32)
        /// Messages were lost.
        case lost
        /// A message that is not needed.
        case other
    }

    /// The number of the request that the message belongs to.
    ///
    /// A change that the request of another process caused has the number of that request.
    package var sequence: UInt32
    /// The port of the process that sent the request.
    package var port: UInt32
    /// Whether something changed while the kernel wrote the reply, so that the reply may be inconsistent.
    package var isInconsistent: Bool
    package var content: Content
}

/// A network interface.
package struct NetworkLink: Sendable, Equatable {
    package var index: Int32
    package var name: String
    /// The kind of hardware (`ARPHRD_…`).
    package var hardware: UInt16
    package var flags: UInt32

    package var isLoopback: Bool { flags & 0x8 != 0 }
    /// Whether the interface is enabled.
    package var isUp: Bool { flags & 0x1 != 0 }
    /// Whether the interface is enabled and has a link, such as a cable.
    package var isRunning: Bool { flags & 0x41 == 0x41 }

    /// The kind of the interface, derived from its hardware type and from the names that systemd and other tools
    /// assign.
    package var kind: Connectivity.Interface {
        switch hardware {
        case 512, 768, 769, 776, 778, 823, 65534: return .tunnel
        case 519: return .cellular
        case 801...803: return .wifi
        default: break
        }
        let kinds: [(String, Connectivity.Interface)] = [
            ("wlan", .wifi), ("wl", .wifi), ("wwan", .cellular), ("ww", .cellular), ("rmnet", .cellular),
            ("eth", .wired), ("en", .wired), ("tun", .tunnel), ("tap", .tunnel), ("wg", .tunnel),
        ]
        return kinds.first { name.hasPrefix($0.0) }?.1 ?? .other
    }
}

/// A version of IP.
package enum NetworkFamily: UInt8, Sendable {
    case ipv4 = 2
    case ipv6 = 10

    /// The number of bytes of an address.
    var addressSize: Int { self == .ipv4 ? 4 : 16 }
}

/// An address of an interface.
package struct NetworkAddress: Sendable, Equatable {
    /// The values that identify an address.
    package struct Key: Sendable, Hashable {
        package var link: Int32
        package var family: NetworkFamily
        package var bytes: [UInt8]
        package var prefixLength: UInt8
    }

    package var key: Key
    package var flags: UInt32
    package var scope: UInt8

    /// Whether the address is ::1.
    private var isLoopback: Bool { key.bytes.last == 1 && key.bytes.dropLast().allSatisfy { $0 == 0 } }

    /// Whether requests may be sent from the address, which must not be a loopback, link-local or duplicate address.
    package var isUsable: Bool {
        // Tentative and not optimistic, or a duplicate.
        if flags & 0x44 == 0x40 || flags & 0x08 != 0 { return false }
        // The scopes link, host and nowhere.
        guard scope < 253 else { return false }
        switch key.family {
        case .ipv4: return !(key.bytes.first == 127 || key.bytes.starts(with: [169, 254]))
        case .ipv6: return !(key.bytes[0] == 0xfe && key.bytes[1] & 0xc0 == 0x80) && !isLoopback
        }
    }
}

/// A route to other hosts.
package struct NetworkRoute: Sendable, Equatable {
    package var family: NetworkFamily
    package var prefixLength: UInt8
    package var table: UInt32
    package var type: UInt8
    package var flags: UInt32
    /// The priority, where a smaller number is preferred.
    package var priority: UInt32
    /// The interfaces of the route, or an empty array if the kernel did not name them.
    package var links: [Int32]

    /// Whether packets leave through the route, which requires a unicast route that is not local and whose interface
    /// is alive.
    package var leadsOut: Bool { type == 1 && table != 255 && flags & 0x11 == 0 }
    package var isDefault: Bool { prefixLength == 0 }
}

/// A sequence of bytes in the machine's byte order, with checked access.
struct NetlinkBytes: Sendable {
    let bytes: ArraySlice<UInt8>

    var count: Int { bytes.count }

    /// The bytes as an array.
    var array: [UInt8] { Array(bytes) }

    /// Returns a number at an offset, or nil if it exceeds the bytes.
    func number<Number: FixedWidthInteger>(_ type: Number.Type, at offset: Int) -> Number? {
        let size = MemoryLayout<Number>.size
        guard offset >= 0, offset <= bytes.count - size else { return nil }
        return bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: type) }
    }

    /// Returns a part of the bytes, or nil if it exceeds them.
    func part(from start: Int, count: Int) -> NetlinkBytes? {
        guard start >= 0, count >= 0, start <= bytes.count, count <= bytes.count - start else { return nil }
        let first = bytes.startIndex + start
        return NetlinkBytes(bytes: bytes[first..<(first + count)])
    }

    /// Returns the bytes from an offset, or nil if it exceeds them.
    func rest(from start: Int) -> NetlinkBytes? { part(from: start, count: count - start) }

    /// The text up to the first zero byte, as in interface names.
    var text: String { String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self) }
}
