// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Reads what the kernel writes: every length is looked at before it is believed.
package enum NetlinkParser {
    /// What a datagram says.
    package struct Result: Sendable, Equatable {
        package var messages: [NetlinkMessage] = []
        /// Whether something in it was not as it should be, so that its messages are not all that was said.
        package var isDamaged = false
    }

    private static let headerSize = 16

    package static func parse(_ datagram: ArraySlice<UInt8>) -> Result {
        var result = Result()
        var rest = NetlinkBytes(datagram)
        while rest.count > 0 {
            guard let length = rest.number(UInt32.self, at: 0), length >= headerSize, length <= rest.count,
                let whole = rest.part(from: 0, count: Int(length)), let message = message(whole)
            else {
                result.isDamaged = true
                return result
            }
            result.messages.append(message)
            // The last one may go without what fills it up to a multiple of four.
            rest = rest.rest(from: (Int(length) + 3) & ~3) ?? NetlinkBytes([])
        }
        return result
    }

    /// Nil if it is not as it should be.
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
        // It may carry the error that broke the answer off.
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
        // A bridge tells of its ports in messages that look the same.
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
            // On a line from point to point the first is the other end's.
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

    /// A list of `struct rtnexthop`, of which those that are dead do not count.
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
            rest = rest.rest(from: (Int(length) + 3) & ~3) ?? NetlinkBytes([])
        }
        if !isAlive { route.flags |= 0x1 }
        return true
    }

    /// Goes through a list of `struct rtattr`; false if a length in it is wrong, or `body` says so.
    private static func eachAttribute(
        _ bytes: NetlinkBytes, from start: Int, _ body: (UInt16, NetlinkBytes) -> Bool
    ) -> Bool {
        guard var rest = bytes.rest(from: start) else { return false }
        // What is shorter than the head of one only fills up.
        while rest.count >= 4 {
            guard let length = rest.number(UInt16.self, at: 0), length >= 4, length <= rest.count,
                let type = rest.number(UInt16.self, at: 2), let value = rest.part(from: 4, count: Int(length) - 4),
                body(type & 0x3fff, value)
            else { return false }
            rest = rest.rest(from: (Int(length) + 3) & ~3) ?? NetlinkBytes([])
        }
        return true
    }
}
