// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A reader of the value of a header, which consists of tokens, quoted strings and separators (RFC 9110, section 5.6).
///
/// The time it takes is proportional to the length of the value, whatever the value is.
struct HeaderScanner {
    private let bytes: [UInt8]
    /// The position of the byte that is read next.
    var index = 0

    init(_ value: String) {
        bytes = Array(value.utf8)
    }

    var isAtEnd: Bool { index == bytes.count }
    var isAtBlank: Bool { !isAtEnd && bytes[index].isBlank }

    func isAt(_ byte: UInt8) -> Bool { !isAtEnd && bytes[index] == byte }

    func text(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }

    /// Moves past a byte, and returns whether the byte was there.
    mutating func take(_ byte: UInt8) -> Bool {
        guard isAt(byte) else { return false }
        index += 1
        return true
    }

    mutating func skip(while isSkipped: (UInt8) -> Bool) {
        while !isAtEnd, isSkipped(bytes[index]) { index += 1 }
    }

    /// Reads all bytes up to the first one that does not belong to the text.
    mutating func text(while belongs: (UInt8) -> Bool) -> String {
        let start = index
        skip(while: belongs)
        return text(start..<index)
    }

    /// Reads a token, or returns `nil` if no token begins here.
    mutating func token() -> String? {
        let token = text { $0.isTokenCharacter }
        return token.isEmpty ? nil : token
    }

    /// Reads a quoted string that begins here, or returns `nil` if the string has no end.
    mutating func quoted() -> String? {
        index += 1
        var value: [UInt8] = []
        while !isAtEnd {
            switch bytes[index] {
            case UInt8(ascii: "\""):
                index += 1
                return String(decoding: value, as: UTF8.self)
            case UInt8(ascii: "\\"):
                index += 1
                guard !isAtEnd else { return nil }
            default: break
            }
            value.append(bytes[index])
            index += 1
        }
        return nil
    }

    /// Moves to the next comma that is not in a quoted string.
    mutating func skipToComma() {
        while !isAtEnd, !isAt(UInt8(ascii: ",")) {
            if isAt(UInt8(ascii: "\"")) {
                _ = quoted()
            } else {
                index += 1
            }
        }
    }
}

// The character classes of the grammars of HTTP.
extension UInt8 {
    var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }

    var isLetter: Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self | 0x20) }

    var isHexDigit: Bool { isDigit || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(self | 0x20) }

    /// Whether the byte is a space or a tab.
    var isBlank: Bool {
        switch self {
        case 0x20, 0x09: true
        default: false
        }
    }

    /// Whether the byte is below the space, or is DEL.
    var isControl: Bool {
        switch self {
        case 0x00..<0x20, 0x7F: true
        default: false
        }
    }

    /// Whether the byte can be part of a `token` (RFC 9110, section 5.6.2).
    var isTokenCharacter: Bool { isLetter || isDigit || "!#$%&'*+-.^_`|~".utf8.contains(self) }

    /// Whether the byte can be part of a `token68` (RFC 9110, section 11.2), except for the equals signs at its end.
    var isToken68Character: Bool { isLetter || isDigit || "-._~+/".utf8.contains(self) }
}

extension String {
    /// The text with `A` to `Z` in lowercase and all other characters unchanged.
    var asciiLowercased: String {
        String(decoding: utf8.map { $0 >= 0x41 && $0 <= 0x5A ? $0 | 0x20 : $0 }, as: UTF8.self)
    }

    /// The `Set-Cookie` headers that Foundation joined to this text.
    ///
    /// A comma separates two headers if a blank, a name and an equals sign follow it. The value of a cookie can contain
    /// the same characters, but Foundation does not say where it joined the headers.
    package var joinedCookies: [String] {
        let bytes = Array(utf8)
        var cookies: [ArraySlice<UInt8>] = []
        var start = 0
        for index in bytes.indices where bytes[index...].starts(with: ", ".utf8) {
            let rest = bytes[(index + 1)...].drop { $0.isBlank }
            let name = rest.prefix { !$0.isBlank && !";,=".utf8.contains($0) }
            guard !name.isEmpty, rest.dropFirst(name.count).first == UInt8(ascii: "=") else { continue }
            cookies.append(bytes[start..<index])
            start = index + 1
        }
        return (cookies + [bytes[start...]]).map { String(decoding: $0.withoutBlanksAround, as: UTF8.self) }
    }
}

extension ArraySlice<UInt8> {
    var withoutBlanksAround: ArraySlice<UInt8> {
        var slice = self.drop { $0.isBlank }
        while let last = slice.last, last.isBlank { slice.removeLast() }
        return slice
    }
}

/// A version of the HTTP protocol, such as HTTP/2.
public struct HTTPVersion: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The major version number, such as 1 in HTTP/1.0.
    public let major: Int
    /// The minor version number, such as 0 in HTTP/1.0.
    public let minor: Int

    package init(_ major: Int, _ minor: Int) {
        self.major = major
        self.minor = minor
    }

    /// HTTP version 1.0.
    public static let http1_0 = HTTPVersion(1, 0)
    /// HTTP version 1.1.
    public static let http1_1 = HTTPVersion(1, 1)
    /// HTTP version 2.
    public static let http2 = HTTPVersion(2, 0)
    /// HTTP version 3.
    public static let http3 = HTTPVersion(3, 0)

    /// Returns a Boolean value that indicates whether the left version is older than the right version.
    public static func < (left: HTTPVersion, right: HTTPVersion) -> Bool {
        (left.major, left.minor) < (right.major, right.minor)
    }

    /// The common name of the version, such as `HTTP/1.1` or `HTTP/2`.
    public var description: String { major < 2 ? "HTTP/\(major).\(minor)" : "HTTP/\(major)" }
}

extension Int64 {
    /// Returns the sum, or the largest or smallest number if the sum overflows.
    package func addingSaturated(_ other: Int64) -> Int64 {
        let (sum, overflows) = addingReportingOverflow(other)
        return overflows ? (other < 0 ? .min : .max) : sum
    }
}

extension Sequence<Int64> {
    /// The sum of the numbers, or the nearest `Int64` if the sum overflows.
    package var saturatedSum: Int64 { reduce(0) { $0.addingSaturated($1) } }
}
