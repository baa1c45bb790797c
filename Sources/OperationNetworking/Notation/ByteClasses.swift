// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// The classes of characters of which the grammars of HTTP are made.
extension UInt8 {
    var isDigit: Bool { self >= UInt8(ascii: "0") && self <= UInt8(ascii: "9") }

    var isLetter: Bool {
        let lower = self | 0x20
        return lower >= UInt8(ascii: "a") && lower <= UInt8(ascii: "z")
    }

    var isHexDigit: Bool {
        let lower = self | 0x20
        return isDigit || (lower >= UInt8(ascii: "a") && lower <= UInt8(ascii: "f"))
    }

    /// A space or a tabulator.
    var isBlank: Bool { self == 0x20 || self == 0x09 }

    /// A character below the space, or DEL.
    var isControl: Bool { self < 0x20 || self == 0x7F }

    /// A character of a `token` (RFC 9110, section 5.6.2).
    var isTokenCharacter: Bool { isLetter || isDigit || "!#$%&'*+-.^_`|~".utf8.contains(self) }

    /// A character of a `token68` (RFC 9110, section 11.2), but for the equals signs at its end.
    var isToken68Character: Bool { isLetter || isDigit || "-._~+/".utf8.contains(self) }
}

extension String {
    /// The text with `A` to `Z` in lower case, and all else as it is.
    var asciiLowercased: String {
        String(decoding: utf8.map { $0 >= 0x41 && $0 <= 0x5A ? $0 | 0x20 : $0 }, as: UTF8.self)
    }
}

extension ArraySlice<UInt8> {
    var withoutBlanksAround: ArraySlice<UInt8> {
        var slice = self.drop { $0.isBlank }
        while let last = slice.last, last.isBlank { slice.removeLast() }
        return slice
    }
}
