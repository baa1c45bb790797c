// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The inside of a string of JSON, between its quotes.
enum JSONText {
    /// The text that is meant; what cannot be understood is left as it stands.
    static func decoded(_ bytes: ArraySlice<UInt8>) -> String {
        guard bytes.contains(0x5C) else { return String(decoding: bytes, as: UTF8.self) }
        var units: [UInt16] = []
        var rest = bytes
        while let first = rest.first {
            if first == 0x5C, let (unit, length) = escaped(rest) {
                units.append(unit)
                rest = rest.dropFirst(length)
            } else {
                // Up to the next escape, and no less than one byte.
                let plain = rest.prefix(1) + rest.dropFirst().prefix { $0 != 0x5C }
                units += String(decoding: plain, as: UTF8.self).utf16
                rest = rest.dropFirst(plain.count)
            }
        }
        return String(decoding: units, as: UTF16.self)
    }

    /// The text as it must stand between quotes.
    static func encoded(_ text: String) -> [UInt8] {
        var result: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case 0x22, 0x5C: result += [0x5C, byte]
            case 0..<0x20:
                let digits = String(byte, radix: 16)
                result += Array("\\u\(String(repeating: "0", count: 4 - digits.count))\(digits)".utf8)
            default: result.append(byte)
            }
        }
        return result
    }

    /// What the escape at the beginning stands for, and its length; nil if it is none.
    private static func escaped(_ bytes: ArraySlice<UInt8>) -> (UInt16, Int)? {
        let letters: [UInt8: UInt16] = [
            0x22: 0x22, 0x5C: 0x5C, 0x2F: 0x2F, 0x62: 8, 0x66: 12, 0x6E: 10, 0x72: 13, 0x74: 9,
        ]
        guard let letter = bytes.dropFirst().first else { return nil }
        if let meant = letters[letter] { return (meant, 2) }
        let digits = bytes.dropFirst(2).prefix(4)
        guard letter == 0x75, digits.count == 4, digits.allSatisfy({ Character(UnicodeScalar($0)).isHexDigit }) else {
            return nil
        }
        return UInt16(String(decoding: digits, as: UTF8.self), radix: 16).map { ($0, 6) }
    }
}
