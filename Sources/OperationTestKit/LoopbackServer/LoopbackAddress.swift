// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Where a ``LoopbackServer`` listens: on this machine only.
public struct LoopbackAddress: Hashable, Sendable, CustomStringConvertible {
    package enum Kind: Hashable, Sendable {
        case ipv4
        case ipv6
        case unixSocket(path: String)
    }

    package let kind: Kind
    package let port: UInt16

    /// 127.0.0.1 on a free port.
    public static let ipv4 = LoopbackAddress(kind: .ipv4, port: 0)
    /// [::1] on a free port: that of ``ipv4`` if the server listens on both.
    public static let ipv6 = LoopbackAddress(kind: .ipv6, port: 0)

    /// 127.0.0.1 on this port; 0 chooses a free one.
    public static func ipv4(port: UInt16) -> LoopbackAddress { LoopbackAddress(kind: .ipv4, port: port) }

    /// [::1] on this port; 0 chooses a free one.
    public static func ipv6(port: UInt16) -> LoopbackAddress { LoopbackAddress(kind: .ipv6, port: port) }

    /// A Unix-domain socket at this path, which must not exist; it is removed when the server stops.
    public static func unixSocket(path: String) -> LoopbackAddress {
        LoopbackAddress(kind: .unixSocket(path: path), port: 0)
    }

    /// The address as it stands in a URL, or the path.
    public var description: String {
        switch kind {
        case .ipv4: "127.0.0.1:\(port)"
        case .ipv6: "[::1]:\(port)"
        case .unixSocket(let path): path
        }
    }

    func with(port: UInt16) -> LoopbackAddress { LoopbackAddress(kind: kind, port: port) }
}
