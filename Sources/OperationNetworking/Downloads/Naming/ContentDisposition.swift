// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The name that a `Content-Disposition` field gives to a file (RFC 6266, RFC 8187).
package enum ContentDisposition {
    /// The name, just as the server gave it: it is not to be trusted.
    ///
    /// That of `filename*` goes before that of `filename`. Nil if there is none that can be read.
    package static func fileName(in field: String) -> String? {
        var plain: String?
        var extended: String?
        for (name, value) in parameters(of: Array(field.utf8)) {
            switch name {
            case "filename": plain = plain ?? String(validating: value, as: UTF8.self) ?? latin(value)
            case "filename*": extended = extended ?? extendedValue(value)
            default: break
            }
        }
        return extended ?? plain
    }

    private static func parameters(of bytes: [UInt8]) -> [(name: String, value: [UInt8])] {
        var result: [(name: String, value: [UInt8])] = []
        var rest = bytes[...]
        skip(&rest, to: UInt8(ascii: ";"))
        while !rest.isEmpty {
            let name = rest.prefix { $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: ";") }
            rest = rest.dropFirst(name.count)
            guard rest.first == UInt8(ascii: "=") else {
                rest = rest.dropFirst()
                continue
            }
            rest = rest.dropFirst().drop(while: \.isBlank)
            let value = rest.first == UInt8(ascii: "\"") ? quoted(&rest) : token(&rest)
            result.append((String(decoding: name.withoutBlanksAround, as: UTF8.self).asciiLowercased, value))
            skip(&rest, to: UInt8(ascii: ";"))
        }
        return result
    }

    /// Drops what comes up to a character, itself included, and does not look into quoted strings.
    private static func skip(_ rest: inout ArraySlice<UInt8>, to end: UInt8) {
        while let byte = rest.first, byte != end {
            if byte == UInt8(ascii: "\"") { _ = quoted(&rest) } else { rest = rest.dropFirst() }
        }
        rest = rest.dropFirst()
    }

    private static func token(_ rest: inout ArraySlice<UInt8>) -> [UInt8] {
        // Names with spaces in them and without quotation marks are common, and mean what they say.
        let value = rest.prefix { $0 != UInt8(ascii: ";") }
        rest = rest.dropFirst(value.count)
        return Array(value.withoutBlanksAround)
    }

    private static func quoted(_ rest: inout ArraySlice<UInt8>) -> [UInt8] {
        var value: [UInt8] = []
        rest = rest.dropFirst()
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "\"") { break }
            if byte == UInt8(ascii: "\\"), let next = rest.first, next == UInt8(ascii: "\"") || next == byte {
                rest = rest.dropFirst()
                value.append(next)
            } else {
                value.append(byte)
            }
        }
        return value
    }

    /// `UTF-8'en'%e2%82%ac%20rates`.
    private static func extendedValue(_ bytes: [UInt8]) -> String? {
        let parts = bytes.split(separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let value = percentDecoded(parts[2]) else { return nil }
        switch String(decoding: parts[0], as: UTF8.self).asciiLowercased {
        case "utf-8": return String(validating: value, as: UTF8.self)
        case "iso-8859-1": return latin(value)
        default: return nil
        }
    }

    private static func percentDecoded(_ bytes: ArraySlice<UInt8>) -> [UInt8]? {
        var result: [UInt8] = []
        var rest = bytes
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                result.append(byte)
                continue
            }
            guard let high = rest.popFirst(), let low = rest.popFirst(), high.isHexDigit, low.isHexDigit,
                let value = UInt8(String(decoding: [high, low], as: UTF8.self), radix: 16)
            else { return nil }
            result.append(value)
        }
        return result
    }

    private static func latin(_ bytes: [UInt8]) -> String {
        String(String.UnicodeScalarView(bytes.map { UnicodeScalar($0) }))
    }
}
