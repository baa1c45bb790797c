// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import OperationTestKit
import Testing

/// Tests valid and invalid messages of the kernel about the network.
@Suite(.timeLimit(.minutes(1)))
struct NetlinkParserTests {
    private let writer = NetlinkWriter(sequence: 7, port: 99)

    private func contents(_ bytes: [UInt8]) -> [NetlinkMessage.Content] {
        NetlinkParser.parse(bytes[...]).messages.map(\.content)
    }

    @Test func `a recording of the kernel's messages is parsed`() throws {
        let links = NetlinkRecording.links.map { NetlinkParser.parse($0[...]) }
        #expect(links.allSatisfy { !$0.isDamaged && $0.messages.allSatisfy { $0.sequence == 1 } })
        let found = links.flatMap(\.messages).compactMap { message -> NetworkLink? in
            if case .link(let link) = message.content { link } else { nil }
        }
        #expect(found.map(\.name) == ["lo", "peer7", "eth7"])
        #expect(found.map(\.isLoopback) == [true, false, false])
        #expect(found.map(\.isRunning) == [true, true, true])
        #expect(links.last?.messages.last?.content == .done)

        let addresses = NetlinkRecording.addresses.flatMap { contents($0) }.compactMap { content -> NetworkAddress? in
            if case .address(let address) = content { address } else { nil }
        }
        let usable = addresses.filter(\.isUsable).map(\.key.bytes)
        #expect(usable.contains([192, 0, 2, 7]))
        #expect(usable.contains([0x20, 1, 0x0d, 0xb8] + [UInt8](repeating: 0, count: 11) + [7]))
        #expect(usable.count == 2, "no loopback and no link-local addresses")

        let routes = NetlinkRecording.routes.flatMap { contents($0) }.compactMap { content -> NetworkRoute? in
            if case .route(let route) = content { route } else { nil }
        }
        #expect(Set(routes.filter { $0.isDefault && $0.leadsOut }.map(\.family)) == [.ipv4, .ipv6])
        #expect(routes.contains { $0.table == 255 && !$0.leadsOut })
    }

    @Test func `messages of the writer are parsed`() throws {
        let link = try #require(writer.link(3, "wlan0", flags: 0x1043).asLink)
        #expect(link.index == 3 && link.name == "wlan0" && link.hardware == 1 && link.flags == 0x1043)
        #expect(contents(writer.link(3, "wlan0", flags: 0, isGone: true)) == [.linkGone(3)])
        let address = try #require(writer.address(3, [10, 0, 0, 1]).asAddress)
        #expect(address.key.link == 3 && address.key.family == .ipv4 && address.key.bytes == [10, 0, 0, 1])
        #expect(address.key.prefixLength == 24 && address.flags == 0x80 && address.scope == 0)
        #expect(contents(writer.address(3, [10, 0, 0, 1], isGone: true)) == [.addressGone(address)])
        let route = try #require(writer.route(link: 3, priority: 100).asRoute)
        #expect(route.family == .ipv4 && route.isDefault && route.table == 254 && route.type == 1)
        #expect(route.priority == 100 && route.links == [3] && route.leadsOut)
        #expect(contents(writer.route(link: 3, priority: 100, isGone: true)) == [.routeGone(route)])
        #expect(contents(writer.done() + writer.refused(16)) == [.done, .refused(16)])
        // A large table number has its own attribute, and the interface number may be a list.
        let hops = writer.hops([(4, 0x1), (5, 0)])
        let more = hops + writer.attribute(15, writer.bytes(UInt32(51_820)))
        let large = try #require(writer.route(link: nil, more: more).asRoute)
        #expect(large.table == 51_820 && large.links == [5] && large.leadsOut)
        let dead = try #require(writer.route(link: nil, more: writer.hops([(4, 0x1)])).asRoute)
        #expect(!dead.leadsOut)
    }

    @Test func `irrelevant messages are ignored`() {
        // A bridge lost a port, but the interface still exists.
        #expect(contents(writer.link(3, "eth0", flags: 0, family: 7, isGone: true)) == [.other])
        #expect(contents(writer.message(36, [1, 2, 3])) == [.other])
        #expect(contents(writer.route(family: 28, link: 1)) == [.other])
        #expect(contents(writer.message(4, [])) == [.lost])
    }

    @Test func `the address of a point-to-point link is the local address, not the peer's address`() {
        let body = writer.bytes(UInt8(2), UInt8(32), UInt8(0), UInt8(0), Int32(3))
        let both = writer.attribute(1, [10, 0, 0, 2]) + writer.attribute(2, [10, 0, 0, 1])
        guard case .address(let address)? = contents(writer.message(20, body + both)).first
        else { return unmet("no address") }
        #expect(address.key.bytes == [10, 0, 0, 1])
    }

    @Test(arguments: [0, 1, 15, 21, 1_000, UInt32.max])
    func `a wrong message length ends parsing, and the result is marked as damaged`(length: UInt32) {
        var bytes = writer.done() + writer.done()
        bytes.replaceSubrange(20..<24, with: writer.bytes(length))
        let result = NetlinkParser.parse(bytes[...])
        #expect(result.messages.count == 1)
        #expect(result.isDamaged)
    }

    @Test(arguments: [0, 3, 60, UInt16.max])
    func `a wrong attribute length makes its message invalid`(length: UInt16) {
        var bytes = writer.link(3, "eth0", flags: 0x1043)
        bytes.replaceSubrange(32..<34, with: writer.bytes(length))
        let result = NetlinkParser.parse(bytes[...])
        #expect(result.messages == [] && result.isDamaged)
    }

    @Test func `an address with too few bytes, or a truncated hop, is invalid`() {
        #expect(NetlinkParser.parse(writer.address(3, [10, 0, 0])[...]).isDamaged)
        let short = writer.route(link: nil, more: writer.attribute(9, [8, 0, 0, 0]))
        #expect(NetlinkParser.parse(short[...]).isDamaged)
        let empty = writer.route(link: nil, more: writer.attribute(9, [0, 0, 0, 0, 1, 0, 0, 0]))
        #expect(NetlinkParser.parse(empty[...]).isDamaged)
    }

    @Test func `a datagram that is cut anywhere is parsed up to the cut`() {
        let bytes = writer.link(3, "eth0", flags: 0x1043) + writer.address(3, [10, 0, 0, 1]) + writer.route(link: 3)
        let whole = NetlinkParser.parse(bytes[...]).messages
        for end in bytes.indices {
            let result = NetlinkParser.parse(bytes[..<end])
            #expect(whole.starts(with: result.messages))
            #expect(result.messages.count < whole.count)
            #expect(result.isDamaged == (end > 0 && !isBoundary(end, in: bytes)), "cut at \(end)")
        }
    }

    private func isBoundary(_ end: Int, in bytes: [UInt8]) -> Bool {
        var place = 0
        while place < end { place += Int(bytes[place]) | Int(bytes[place + 1]) << 8 }
        return place == end
    }

    @Test func `random changes neither crash the parser nor yield more messages than fit in the bytes`() {
        let recording = NetlinkRecording.links + NetlinkRecording.addresses + NetlinkRecording.routes
        for seed in 0..<UInt64(Rounds.count(ci: 3_000, soak: 1_000_000)) {
            var generator = SeededGenerator(seed: Rounds.firstSeed &+ seed)
            var bytes = recording[Int.random(in: 0..<recording.count, using: &generator)]
            for _ in 0..<Int.random(in: 1...8, using: &generator) {
                let place = Int.random(in: 0..<bytes.count, using: &generator)
                switch Int.random(in: 0..<4, using: &generator) {
                case 0: bytes[place] = .random(in: 0...255, using: &generator)
                case 1: bytes[place] = [0, 1, 3, 4, 0x7f, 0x80, 0xff].randomElement(using: &generator) ?? 0
                case 2: bytes.removeSubrange(place..<min(place + 5, bytes.count))
                default: bytes.insert(contentsOf: [0xff, 0xff, 0xff, 0xff], at: place)
                }
                if bytes.isEmpty { bytes = [0] }
            }
            let result = NetlinkParser.parse(bytes[...])
            #expect(result.messages.count <= bytes.count / 16, "seed \(seed)")
            var machine = NetlinkMachine(port: NetlinkRecording.port, need: .anyRoute)
            _ = machine.begin()
            _ = machine.receive(bytes[...])
            _ = machine.picture.connectivity
        }
    }
}
