// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A version of HTTP.
public struct HTTPVersion: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The number before the dot.
    public let major: Int
    /// The number after the dot.
    public let minor: Int

    /// Makes a version.
    public init(_ major: Int, _ minor: Int) {
        self.major = major
        self.minor = minor
    }

    /// HTTP/1.0.
    public static let http1_0 = HTTPVersion(1, 0)
    /// HTTP/1.1.
    public static let http1_1 = HTTPVersion(1, 1)
    /// HTTP/2.
    public static let http2 = HTTPVersion(2, 0)
    /// HTTP/3.
    public static let http3 = HTTPVersion(3, 0)

    /// Whether the left one is older.
    public static func < (left: HTTPVersion, right: HTTPVersion) -> Bool {
        (left.major, left.minor) < (right.major, right.minor)
    }

    /// As it is written: `HTTP/1.1`, `HTTP/2`.
    public var description: String { major < 2 ? "HTTP/\(major).\(minor)" : "HTTP/\(major)" }
}
