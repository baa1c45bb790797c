// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import Testing

/// Tests how the state follows from interfaces, addresses and routes.
@Suite(.timeLimit(.minutes(1)))
struct NetworkTopologyTests {
    private let writer = NetlinkWriter()

    private func link(
        _ index: Int32 = 2, _ name: String = "eth0", flags: UInt32 = 0x1043, hardware: UInt16 = 1
    ) -> NetworkLink? {
        writer.link(index, name, flags: flags, hardware: hardware).asLink
    }

    private func address(
        _ bytes: [UInt8] = [192, 0, 2, 1], link: Int32 = 2, flags: UInt32 = 0x80, scope: UInt8 = 0
    ) -> NetworkAddress? {
        writer.address(link, bytes, flags: flags, scope: scope).asAddress
    }

    private func route(
        _ family: NetworkFamily = .ipv4, prefixLength: UInt8 = 0, table: UInt8 = 254, type: UInt8 = 1,
        flags: UInt32 = 0, priority: UInt32 = 0, links: [Int32] = [2]
    ) -> NetworkRoute? {
        writer.route(
            family: family.rawValue, prefixLength: prefixLength, table: table, type: type, flags: flags,
            link: links.count == 1 ? links[0] : nil, priority: priority,
            more: links.count > 1 ? writer.hops(links.map { ($0, 0) }) : []
        ).asRoute
    }

    private func status(
        _ need: RouteNeed = .defaultRoute, link: NetworkLink?, _ address: NetworkAddress?, _ route: NetworkRoute?
    ) -> Connectivity.Status {
        var picture = NetworkTopology(need)
        if let link { picture.add(link) }
        if let address { picture.add(address) }
        if let route { picture.add(route) }
        return picture.connectivity.status
    }

    @Test func `the state is satisfied only with an interface, an address and a route`() {
        #expect(status(link: link(), address(), route()) == .satisfied)
        #expect(status(link: nil, address(), route()) == .unsatisfied)
        #expect(status(link: link(), nil, route()) == .unsatisfied)
        #expect(status(link: link(), address(), nil) == .unsatisfied)
    }

    @Test(
        arguments: [
            // Up, running, broadcast and multicast. Then some of these flags are missing, or the interface is a
            // loopback interface.
            (0x1043, true), (0x1003, false), (0x1042, false), (0x1002, false), (0x49, false), (0x41, true),
        ] as [(UInt32, Bool)])
    func `an interface counts only if it is running`(flags: UInt32, counts: Bool) {
        #expect(status(link: link(flags: flags), address(), route()) == (counts ? .satisfied : .unsatisfied))
    }

    private static let global = [0x20, 1] + [UInt8](repeating: 0, count: 13) + [1]
    private static let linkLocal = [0xfe, 0x80] + [UInt8](repeating: 0, count: 13) + [1]

    @Test func `an address counts only if it can receive responses`() throws {
        let cases: [(NetworkAddress?, Bool)] = [
            (address([10, 0, 0, 1]), true), (address([127, 0, 0, 1]), false), (address([169, 254, 1, 1]), false),
            (address([UInt8](repeating: 0, count: 15) + [1]), false),
            (address(scope: 253), false), (address(scope: 254), false), (address(scope: 200), true),
            (address(Self.global), true), (address(Self.linkLocal), false),
            // Tentative, tentative and optimistic, duplicate, deprecated.
            (address(Self.global, flags: 0x40), false), (address(Self.global, flags: 0x44), true),
            (address(Self.global, flags: 0x48), false), (address(Self.global, flags: 0x20), true),
        ]
        for (address, isUsable) in cases {
            let family = try #require(address?.key.family)
            let expected: Connectivity.Status = isUsable ? .satisfied : .unsatisfied
            #expect(status(link: link(), address, route(family)) == expected, "\(String(describing: address))")
        }
    }

    @Test func `an interface without an address uses the address of another interface`() {
        #expect(status(link: link(), address(link: 1), route()) == .satisfied)
        #expect(status(link: link(), address(Self.global, link: 1), route()) == .unsatisfied)
        #expect(status(link: link(), address([127, 0, 0, 1], link: 1), route()) == .unsatisfied)
    }

    @Test func `a route counts only through a running interface with an address of its IP version`() {
        #expect(status(link: link(), address(), route(.ipv6)) == .unsatisfied)
        #expect(status(link: link(), address(), route(links: [3])) == .unsatisfied)
        #expect(status(link: link(), address(), route(links: [3, 2])) == .satisfied)
        #expect(status(link: link(), address(), route(links: [])) == .satisfied, "a hop that is a separate object")
        #expect(status(link: link(), address(), route(table: 255)) == .unsatisfied)
        #expect(status(link: link(), address(), route(table: 52)) == .satisfied, "the table of a VPN")
        #expect(status(link: link(), address(), route(type: 7)) == .unsatisfied, "unreachable")
        #expect(status(link: link(), address(), route(flags: 0x1)) == .unsatisfied, "dead")
        #expect(status(link: link(), address(), route(flags: 0x10)) == .unsatisfied, "its interface has no cable")
    }

    @Test func `a route to a part of the network counts only with anyRoute`() {
        let near = route(prefixLength: 24)
        #expect(status(link: link(), address(), near) == .unsatisfied)
        #expect(status(.anyRoute, link: link(), address(), near) == .satisfied)
    }

    @Test func `interfaces are listed in the order in which the system prefers them`() throws {
        var picture = NetworkTopology(.defaultRoute)
        for (index, name, priority) in [(2, "wlan0", 600), (3, "enp3s0", 100), (4, "docker0", nil)]
            as [(Int32, String, UInt32?)]
        {
            picture.add(try #require(link(index, name)))
            picture.add(try #require(address([192, 0, UInt8(index), 1], link: index)))
            if let priority { picture.add(try #require(route(priority: priority, links: [index]))) }
        }
        #expect(picture.connectivity == Connectivity(.satisfied, interfaces: [.wired, .wifi]))
        picture.removeLink(3)
        #expect(picture.connectivity == Connectivity(.satisfied, interfaces: [.wifi]))
        #expect(picture.addresses.keys.allSatisfy { $0.link != 3 })
    }

    @Test func `the kind of an interface follows from its hardware type and its name`() {
        let cases: [(String, UInt16, Connectivity.Interface)] = [
            ("eth0", 1, .wired), ("enp0s31f6", 1, .wired), ("wlp2s0", 1, .wifi), ("wlan0", 1, .wifi),
            ("wwan0", 1, .cellular), ("rmnet0", 519, .cellular), ("wg0", 65_534, .tunnel), ("tun0", 65_534, .tunnel),
            ("ppp0", 512, .tunnel), ("br0", 1, .other),
        ]
        for (name, hardware, kind) in cases {
            #expect(link(1, name, hardware: hardware)?.kind == kind, "\(name)")
        }
    }
}
