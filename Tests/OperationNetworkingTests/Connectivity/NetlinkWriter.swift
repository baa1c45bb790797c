// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking

/// Writes messages in the format of the kernel.
struct NetlinkWriter {
    var sequence: UInt32 = 0
    var port: UInt32 = 0
    var flags: UInt16 = 0

    func link(
        _ index: Int32, _ name: String, flags: UInt32, hardware: UInt16 = 1, family: UInt8 = 0, isGone: Bool = false
    ) -> [UInt8] {
        let body = bytes(family, UInt8(0), hardware, index, flags, UInt32.max)
        return message(isGone ? 17 : 16, body + attribute(3, Array(name.utf8) + [0]))
    }

    func address(
        _ link: Int32, _ address: [UInt8], prefixLength: UInt8 = 24, flags: UInt32 = 0x80, scope: UInt8 = 0,
        isGone: Bool = false
    ) -> [UInt8] {
        let body = bytes(address.count == 4 ? UInt8(2) : 10, prefixLength, UInt8(flags & 0xff), scope, link)
        return message(isGone ? 21 : 20, body + attribute(1, address) + attribute(8, bytes(flags)))
    }

    func route(
        family: UInt8 = 2, prefixLength: UInt8 = 0, table: UInt8 = 254, type: UInt8 = 1, flags: UInt32 = 0,
        link: Int32?, priority: UInt32 = 0, more: [UInt8] = [], isGone: Bool = false
    ) -> [UInt8] {
        let body = bytes(family, prefixLength, UInt8(0), UInt8(0), table, UInt8(3), UInt8(0), type, flags)
        let place = link.map { attribute(4, bytes($0)) } ?? []
        return message(isGone ? 25 : 24, body + place + attribute(6, bytes(priority)) + more)
    }

    /// The hops of a multipath route.
    func hops(_ links: [(link: Int32, flags: UInt8)]) -> [UInt8] {
        attribute(9, links.flatMap { bytes(UInt16(8), $0.flags, UInt8(0), $0.link) })
    }

    func done() -> [UInt8] { message(3, bytes(Int32(0))) }
    func refused(_ number: Int32) -> [UInt8] { message(2, bytes(-number) + [UInt8](repeating: 0, count: 16)) }

    func message(_ type: UInt16, _ body: [UInt8]) -> [UInt8] {
        padded(bytes(UInt32(16 + body.count), type, flags, sequence, port) + body)
    }

    func attribute(_ type: UInt16, _ value: [UInt8]) -> [UInt8] { padded(bytes(UInt16(4 + value.count), type) + value) }

    private func padded(_ bytes: [UInt8]) -> [UInt8] { bytes + [UInt8](repeating: 0, count: -bytes.count & 3) }

    func bytes<each Number: FixedWidthInteger>(_ numbers: repeat each Number) -> [UInt8] {
        var bytes: [UInt8] = []
        for number in repeat each numbers { withUnsafeBytes(of: number) { bytes += $0 } }
        return bytes
    }
}

// The parsed content, if the bytes are one message of that kind.
extension [UInt8] {
    private var content: NetlinkMessage.Content? {
        let result = NetlinkParser.parse(self[...])
        return result.isDamaged ? nil : result.messages.first?.content
    }

    var asLink: NetworkLink? { if case .link(let link)? = content { link } else { nil } }
    var asAddress: NetworkAddress? { if case .address(let address)? = content { address } else { nil } }
    var asRoute: NetworkRoute? { if case .route(let route)? = content { route } else { nil } }
}
