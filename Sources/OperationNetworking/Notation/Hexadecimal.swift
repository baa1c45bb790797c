// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Bytes as hexadecimal digits.
package enum Hexadecimal {
    /// The two digits of a byte, in upper case as addresses have them.
    static func upper(_ byte: UInt8) -> [UInt8] {
        let digits = Array("0123456789ABCDEF".utf8)
        return [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }

    /// The digits of bytes, in lower case as checksums have them.
    package static func lower(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    /// Returns the bytes of a text with its percent escapes decoded.
    ///
    /// A percent sign that begins no valid escape stays.
    static func percentDecoded(_ text: ArraySlice<UInt8>) -> [UInt8] {
        var (bytes, rest) = ([UInt8](), text)
        bytes.reserveCapacity(text.count)
        while let byte = rest.popFirst() {
            let digits = rest.prefix(2)
            guard byte == UInt8(ascii: "%"), digits.count == 2, digits.allSatisfy(\.isHexDigit),
                let escaped = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
            else {
                bytes.append(byte)
                continue
            }
            bytes.append(escaped)
            rest = rest.dropFirst(2)
        }
        return bytes
    }
}
