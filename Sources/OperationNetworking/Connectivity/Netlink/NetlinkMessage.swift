// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A message of the kernel's about its network, as far as it matters here (`netlink(7)`, `rtnetlink(7)`).
package struct NetlinkMessage: Sendable, Equatable {
    package enum Content: Sendable, Equatable {
        case link(NetworkLink)
        case linkGone(Int32)
        case address(NetworkAddress)
        case addressGone(NetworkAddress)
        case route(NetworkRoute)
        case routeGone(NetworkRoute)
        /// The end of an answer.
        case done
        /// A request was refused, with this number of an error; 0 if it was not.
        case refused(Int32)
        /// Messages were lost.
        case lost
        /// Something that does not matter.
        case other
    }

    /// The number of the request that it answers.
    ///
    /// A message about a change that somebody else's request made has that one's.
    package var sequence: UInt32
    /// The port of who asked.
    package var port: UInt32
    /// Whether something changed while the answer was being written, so that it may fit together badly.
    package var isInconsistent: Bool
    package var content: Content
}

/// A network interface.
package struct NetworkLink: Sendable, Equatable {
    package var index: Int32
    package var name: String
    /// What it is to the kernel (`ARPHRD_…`).
    package var hardware: UInt16
    package var flags: UInt32

    package var isLoopback: Bool { flags & 0x8 != 0 }
    /// Whether it was switched on.
    package var isUp: Bool { flags & 0x1 != 0 }
    /// Whether it was switched on, and has a cable or what takes its place.
    package var isRunning: Bool { flags & 0x41 == 0x41 }

    /// The kind, by what the kernel says and by the names that systemd and others give.
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

/// Which version of IP something belongs to.
package enum NetworkFamily: UInt8, Sendable {
    case ipv4 = 2
    case ipv6 = 10

    /// How many bytes an address has.
    var addressSize: Int { self == .ipv4 ? 4 : 16 }
}

/// An address of an interface.
package struct NetworkAddress: Sendable, Equatable {
    /// What tells it from others.
    package struct Key: Sendable, Hashable {
        package var link: Int32
        package var family: NetworkFamily
        package var bytes: [UInt8]
        package var prefixLength: UInt8
    }

    package var key: Key
    package var flags: UInt32
    package var scope: UInt8

    /// Whether it is ::1.
    private var isLoopback: Bool { key.bytes.last == 1 && key.bytes.dropLast().allSatisfy { $0 == 0 } }

    /// Whether requests may be sent from it: it is neither of a link nor of loopback, and nobody else has it.
    package var isUsable: Bool {
        // Tentative and not optimistic, or found to be somebody else's.
        if flags & 0x44 == 0x40 || flags & 0x08 != 0 { return false }
        // Of a link only, of this host only, of nowhere.
        guard scope < 253 else { return false }
        switch key.family {
        case .ipv4: return !(key.bytes.first == 127 || key.bytes.starts(with: [169, 254]))
        case .ipv6: return !(key.bytes[0] == 0xfe && key.bytes[1] & 0xc0 == 0x80) && !isLoopback
        }
    }
}

/// A way to other hosts.
package struct NetworkRoute: Sendable, Equatable {
    package var family: NetworkFamily
    package var prefixLength: UInt8
    package var table: UInt32
    package var type: UInt8
    package var flags: UInt32
    /// The smaller, the more it is preferred.
    package var priority: UInt32
    /// The interfaces by which it leads; none if that was not said.
    package var links: [Int32]

    /// Whether packets are sent by it: it is no trap, not one to this host, and its interface is alive.
    package var leadsOut: Bool { type == 1 && table != 255 && flags & 0x11 == 0 }
    package var isDefault: Bool { prefixLength == 0 }
}
