// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore

// Errors and logs contain text from servers, such as header values, names in JSON and messages of libcurl. A terminal
// obeys control characters, and a line break could begin a log line that the library did not write.
extension String {
    /// Returns the text without the characters that control a terminal, break a line or change the direction of
    /// writing.
    ///
    /// Control characters (C0, DEL, C1) and separators of lines and paragraphs become blanks. Invisible characters,
    /// such as bidirectional overrides, are removed. The two invisible characters that some scripts and emoji need
    /// between letters stay.
    ///
    /// - Parameter keepsLines: Whether line feeds and tabs stay, as in the text of a body. The default is `false`.
    package func printable(keepsLines: Bool = false) -> String {
        // Most texts are ASCII and have nothing to replace.
        if utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) { return self }
        var result = String.UnicodeScalarView()
        for scalar in unicodeScalars {
            if keepsLines, scalar == "\n" || scalar == "\t" {
                result.append(scalar)
                continue
            }
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator: result.append(" ")
            case .format where scalar != "\u{200C}" && scalar != "\u{200D}": break
            default: result.append(scalar)
            }
        }
        return String(result)
    }

    /// Returns the printable text of several lines, such as a body, for a log.
    ///
    /// All lines but the first are indented.
    var indentedPrintable: String { printable(keepsLines: true).replacing("\n", with: "\n  ") }
}

/// Conversions between bytes and hexadecimal digits.
package enum Hexadecimal {
    /// Returns the two digits of a byte in uppercase, as in URLs.
    static func upper(_ byte: UInt8) -> [UInt8] {
        let digits = Array("0123456789ABCDEF".utf8)
        return [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }

    /// Returns the digits of bytes in lowercase, as in checksums.
    package static func lower(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        text.reserveCapacity(2 * bytes.underestimatedCount)
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns the digits of the SHA-256 checksum of bytes, or of the first `byteCount` bytes of the checksum.
    package static func sha256(_ bytes: some Sequence<UInt8>, byteCount: Int = 32) -> String {
        lower(SHA256.checksum(of: Array(bytes)).prefix(byteCount))
    }

    /// Returns the bytes of a string with its percent escapes decoded.
    ///
    /// A percent sign that begins no valid escape is kept.
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
