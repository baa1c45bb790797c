// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A parser that replaces the secret values in JSON and copies everything else byte by byte.
///
/// The JSON may be incomplete, as after an interrupted transfer. The parser looks at every name, because an object may
/// contain the same name twice.
package struct SecretJSON {
    private enum Expected {
        /// A value, or the first value of an array or its end.
        case value, firstValue
        /// A name, or the first name of an object or its end.
        case key, firstKey
        case colon
        /// A comma, or the end of the enclosing array or object.
        case next
        /// Nothing, or another array or object of JSON Lines.
        case another
        /// Nothing.
        case nothing
    }

    private struct Container {
        let isObject: Bool
        /// Whether the container is the value of a secret name.
        let isHidden: Bool
        /// The position at which the container begins.
        let start: Int
        /// The length of the result when the container began, or `nil` if the container is not replaced as a whole.
        let shownEnd: Int?
        /// Whether the value in the object is a secret because of a name in it: `{"name": "password", "value": "…"}`.
        let hidesValue: Bool
        /// Whether the first element is a secret name, as in the list of pairs `[["token", "…"]]`.
        var hidesRest = false
        /// Whether the previous element is a secret name, as in `["X-Api-Key", "…", "Accept", "*/*"]`.
        var hidesNextText = false
    }

    /// Three asterisks in quotation marks.
    private static let hidden = Array("\"\(LogRedaction.stars)\"".utf8)

    private let bytes: [UInt8]
    private let redaction: LogRedaction
    private let keepsKinds: Bool
    private let text: (String) -> String
    /// The positions of the objects whose value is a secret, as found in the first pass.
    private let secretPairs: Set<Int>
    /// The positions of such objects that this pass has found so far.
    private var pairs: Set<Int> = []
    private var index = 0
    private var result: [UInt8] = []
    private var containers: [Container] = []
    private var expected = Expected.value
    /// Whether the name before the value is a secret name.
    private var isHidden = false
    private var name = ""

    private init(
        _ data: Data, _ redaction: LogRedaction, _ keepsKinds: Bool, _ text: @escaping (String) -> String,
        secretPairs: Set<Int> = []
    ) {
        bytes = Array(data)
        (self.redaction, self.keepsKinds, self.text, self.secretPairs) = (redaction, keepsKinds, text, secretPairs)
        result.reserveCapacity(bytes.count)
    }

    /// Returns the JSON without the values of secret names, or `nil` if the data is not JSON.
    ///
    /// - Parameters:
    ///   - data: The JSON.
    ///   - redaction: The redaction that decides which names are secret.
    ///   - keepsKinds: Whether the result can still be decoded. A hidden string then becomes `***`, a hidden number
    ///     becomes 0, and an array or object keeps its shape. Otherwise, every hidden value becomes the string `***`.
    ///   - text: A closure that returns a string without the secrets in it, called with every string whose name is not
    ///     secret.
    package static func redacted(
        _ data: Data, _ redaction: LogRedaction, keepsKinds: Bool, text: @escaping (String) -> String
    ) -> Data? {
        var json = Self(data, redaction, keepsKinds, text)
        guard json.read() else { return nil }
        guard !json.pairs.isEmpty else { return Data(json.result) }
        // A value may come before the name that makes it a secret, so a second pass is necessary.
        var again = Self(data, redaction, keepsKinds, text, secretPairs: json.pairs)
        return again.read() ? Data(again.result) : nil
    }

    private mutating func read() -> Bool {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { copy(3) }
        while index < bytes.count {
            let byte = bytes[index]
            let isBlank = Self.isBlank(byte) || containers.isEmpty && byte == 0x1E
            if isBlank { copy(1) } else if !step(byte) { return false }
        }
        return true
    }

    /// Reads the token that begins with a byte, and returns `false` if the token is not allowed at this position.
    private mutating func step(_ byte: UInt8) -> Bool {
        switch (expected, byte) {
        case (.value, 0x7B), (.firstValue, 0x7B), (.another, 0x7B): begin(isObject: true)
        case (.value, 0x5B), (.firstValue, 0x5B), (.another, 0x5B): begin(isObject: false)
        case (.firstValue, 0x5D), (.firstKey, 0x7D): end()
        case (.next, 0x5D) where containers.last?.isObject == false: end()
        case (.next, 0x7D) where containers.last?.isObject == true: end()
        case (.next, 0x2C):
            copy(1)
            expected = containers.last?.isObject == true ? .key : .value
        case (.key, 0x22), (.firstKey, 0x22): takeName()
        case (.colon, 0x3A):
            copy(1)
            expected = .value
        case (.value, 0x22), (.firstValue, 0x22): takeText()
        case (.value, _), (.firstValue, _): return takeWord()
        default: return false
        }
        return true
    }

    private var isValueHidden: Bool {
        isHidden || containers.last?.isHidden == true || containers.last?.hidesRest == true
    }

    private mutating func begin(isObject: Bool) {
        let isHidden = isValueHidden
        if !containers.isEmpty { containers[containers.count - 1].hidesNextText = false }
        containers.append(
            Container(
                isObject: isObject, isHidden: isHidden, start: index,
                shownEnd: isHidden && !keepsKinds ? result.count : nil, hidesValue: secretPairs.contains(index)))
        self.isHidden = false
        copy(1)
        expected = isObject ? .firstKey : .firstValue
    }

    private mutating func end() {
        copy(1)
        if let shownEnd = containers.removeLast().shownEnd {
            result.removeSubrange(shownEnd...)
            result += Self.hidden
        }
        expected = containers.isEmpty ? .another : .next
    }

    private mutating func takeName() {
        let string = string()
        name = JSONText.decoded(bytes[string.inside])
        // A name may itself contain a secret, as in `{"token=…": true}`.
        let shown = redaction.withoutNamedSecrets(name)
        if shown == name {
            copy(string.end - index)
        } else {
            result += [0x22] + JSONText.encoded(shown) + (string.isWhole ? [0x22] : [])
            index = string.end
        }
        let isValue = containers.last?.hidesValue == true && LogRedaction.isValue(name)
        isHidden = isValue || redaction.hides(name)
        expected = .colon
    }

    private mutating func takeText() {
        let string = string()
        let inside = bytes[string.inside]
        let quote: [UInt8] = string.isWhole ? [0x22] : []
        let plain = JSONText.decoded(inside)
        // This check also applies if the name itself is secret, such as `key`.
        if let object = containers.last, object.isObject, redaction.hidesNeighbours(name, plain) {
            pairs.insert(object.start)
        }
        let isListOfPairs = containers.suffix(2).count { !$0.isObject } == 2
        let isFirst = expected == .firstValue
        if isValueHidden || containers.last?.hidesNextText == true {
            result += Self.hidden.dropLast() + quote
        } else {
            let shown = text(plain)
            result += [0x22] + (shown == plain ? Array(inside) : JSONText.encoded(shown)) + quote
        }
        index = string.end
        if isFirst, isListOfPairs, redaction.hides(plain) { containers[containers.count - 1].hidesRest = true }
        valueIsOver()
        if let array = containers.last, !array.isObject {
            containers[containers.count - 1].hidesNextText = redaction.hidesText(after: plain)
        }
    }

    /// Reads a number, `true`, `false` or `null`, or a value such as `NaN` that some encoders write.
    private mutating func takeWord() -> Bool {
        let word = bytes[index...].prefix { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2B, 0x2D, 0x2E: true
            default: false
            }
        }
        guard let first = word.first else { return false }
        if isValueHidden, !keepsKinds {
            result += Self.hidden
        } else if !isValueHidden || ["true", "false", "null"].contains(String(decoding: word, as: UTF8.self)) {
            result += word
        } else {
            result += Array((first == 0x2D || (0x30...0x39).contains(first) ? "0" : "null").utf8)
        }
        index = word.endIndex
        valueIsOver()
        return true
    }

    private mutating func valueIsOver() {
        isHidden = false
        if !containers.isEmpty { containers[containers.count - 1].hidesNextText = false }
        expected = containers.isEmpty ? .nothing : .next
    }

    private mutating func copy(_ count: Int) {
        result += bytes[index..<index + count]
        index += count
    }

    /// Returns the content of the string at the current position, and its end.
    ///
    /// The string may be cut off.
    private func string() -> (inside: Range<Int>, end: Int, isWhole: Bool) {
        var end = index + 1
        while end < bytes.count, bytes[end] != 0x22 { end += bytes[end] == 0x5C ? 2 : 1 }
        guard end < bytes.count else { return (index + 1..<bytes.count, bytes.count, false) }
        return (index + 1..<end, end + 1, true)
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 32 || byte == 9 || byte == 10 || byte == 13 }
}

/// The content of a JSON string between its quotation marks.
enum JSONText {
    /// Returns the decoded text, in which invalid escapes remain unchanged.
    static func decoded(_ bytes: ArraySlice<UInt8>) -> String {
        guard bytes.contains(0x5C) else { return String(decoding: bytes, as: UTF8.self) }
        var units: [UInt16] = []
        var rest = bytes
        while let first = rest.first {
            if first == 0x5C, let (unit, length) = escaped(rest) {
                units.append(unit)
                rest = rest.dropFirst(length)
            } else {
                // Take all bytes before the next escape, but at least one byte.
                let plain = rest.prefix(1) + rest.dropFirst().prefix { $0 != 0x5C }
                units += String(decoding: plain, as: UTF8.self).utf16
                rest = rest.dropFirst(plain.count)
            }
        }
        return String(decoding: units, as: UTF16.self)
    }

    /// Returns the text as it must be written between quotation marks.
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

    /// Returns the meaning and the length of the escape at the beginning, or `nil` if it is not a valid escape.
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
