// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Reads a field with challenges, where commas part challenges and their parameters alike.
struct ChallengeParser {
    private let bytes: [UInt8]
    private var index = 0
    /// More challenges than anybody means; a field of commas must not cost more than it is long.
    private static let limit = 32

    init(_ field: String) {
        bytes = Array(field.utf8)
    }

    mutating func challenges() -> [Challenge] {
        var found: [Challenge] = []
        while found.count < Self.limit {
            skip { $0.isBlank || $0 == UInt8(ascii: ",") }
            guard index < bytes.count else { break }
            if let challenge = challenge() {
                found.append(challenge)
            } else {
                skipToComma()
            }
        }
        return found
    }

    private mutating func challenge() -> Challenge? {
        guard let scheme = token(), isAtBlank || isAtEnd else { return nil }
        let hadBlank = isAtBlank
        skip { $0.isBlank }
        if hadBlank, let data = token68() {
            return Challenge(scheme: scheme.asciiLowercased, token: data, parameters: [:])
        }
        var parameters: [String: String] = [:]
        var isAtStart = !isAtEnd
        // A comma may part two parameters or two challenges: what follows it says which.
        while let (name, value) = parameter() {
            // Of two of one name the first counts.
            if parameters[name] == nil { parameters[name] = value }
            skip { $0.isBlank }
            guard isAtEnd else { return nil }
            skip { $0.isBlank || $0 == UInt8(ascii: ",") }
            isAtStart = false
        }
        // What follows the scheme and is no parameter belongs to nothing.
        if isAtStart { return nil }
        return Challenge(scheme: scheme.asciiLowercased, token: nil, parameters: parameters)
    }

    /// A name, an equals sign and a value; nothing is taken if it is none.
    private mutating func parameter() -> (String, String)? {
        let start = index
        if let name = token() {
            skip { $0.isBlank }
            if take(UInt8(ascii: "=")) {
                skip { $0.isBlank }
                if let value = isAt(UInt8(ascii: "\"")) ? quoted() : token() { return (name.asciiLowercased, value) }
            }
        }
        index = start
        return nil
    }

    /// Data up to a comma or the end; nothing is taken if it is none.
    private mutating func token68() -> String? {
        let start = index
        skip { $0.isToken68Character }
        guard index > start else { return nil }
        skip { $0 == UInt8(ascii: "=") }
        let end = index
        skip { $0.isBlank }
        if isAtEnd { return String(decoding: bytes[start..<end], as: UTF8.self) }
        index = start
        return nil
    }

    private mutating func token() -> String? {
        let start = index
        skip { $0.isTokenCharacter }
        return index > start ? String(decoding: bytes[start..<index], as: UTF8.self) : nil
    }

    private mutating func quoted() -> String? {
        index += 1
        var value: [UInt8] = []
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\""):
                index += 1
                return String(decoding: value, as: UTF8.self)
            case UInt8(ascii: "\\"):
                index += 1
                guard index < bytes.count else { return nil }
            default: break
            }
            value.append(bytes[index])
            index += 1
        }
        return nil
    }

    /// Past what cannot be read, over whatever is in quotation marks.
    private mutating func skipToComma() {
        while index < bytes.count, !isAt(UInt8(ascii: ",")) {
            if isAt(UInt8(ascii: "\"")) {
                _ = quoted()
            } else {
                index += 1
            }
        }
    }

    private var isAtBlank: Bool { index < bytes.count && bytes[index].isBlank }
    private var isAtEnd: Bool { index == bytes.count || isAt(UInt8(ascii: ",")) }

    private func isAt(_ byte: UInt8) -> Bool { index < bytes.count && bytes[index] == byte }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard isAt(byte) else { return false }
        index += 1
        return true
    }

    private mutating func skip(while isSkipped: (UInt8) -> Bool) {
        while index < bytes.count, isSkipped(bytes[index]) { index += 1 }
    }
}
