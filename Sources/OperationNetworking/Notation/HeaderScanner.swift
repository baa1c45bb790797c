// Part of OperationKit, released under the MIT licence.
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

    /// Moves past a byte; returns whether it was there.
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

    /// Reads a token; `nil` if no token begins here.
    mutating func token() -> String? {
        let token = text { $0.isTokenCharacter }
        return token.isEmpty ? nil : token
    }

    /// Reads a quoted string, at whose first quotation mark the scanner is; `nil` if the string has no end.
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
