// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A namespace for the function that creates safe file names for downloads.
///
/// The file name of a download is always a single path component. The name does not contain slashes, backslashes,
/// control characters or characters that change the writing direction. The name does not begin with a period, is at
/// most 200 bytes long, and is never empty.
public enum DownloadFileName {
    /// Returns a safe file name for the body of a response.
    ///
    /// The name comes from the `Content-Disposition` header. If the header contains no usable name, the name is the
    /// last path component of the response's URL, or `download` if this URL contains no usable name either.
    public static func name(for head: ResponseHead) -> String {
        if let field = head.headers["Content-Disposition"], let given = ContentDisposition.fileName(in: field) {
            let name = cleaned(given)
            if !name.isEmpty { return name }
        }
        let path = head.url.absoluteURL.path(percentEncoded: true)
        let last = path.utf8.split(separator: UInt8(ascii: "/")).last.flatMap(String.init) ?? ""
        let name = cleaned(last.utf8.contains(UInt8(ascii: "%")) ? last.removingPercentEncoding ?? last : last)
        return name.isEmpty ? "download" : name
    }

    /// Returns the safe part of an untrusted file name, or an empty string if no character of the name is safe.
    package static func cleaned(_ name: String) -> String {
        let isSafe = { (byte: UInt8) in byte.isLetter || byte.isDigit || "-_.".utf8.contains(byte) }
        let (first, last) = (name.utf8.first, name.utf8.last)
        if name.utf8.count <= limit, first != dot, last != dot, name.utf8.allSatisfy(isSafe) { return name }
        // Use only the last component of a path, because some servers send the path on the uploader's disk.
        let parts = name.unicodeScalars.split { $0 == "/" || $0 == "\\" || $0 == "\u{0}" }
        var scalars = (parts.last.map { Array($0) } ?? []).filter { !isDangerous($0) }
        while let last = scalars.last, last == "." || last.properties.isWhitespace { scalars.removeLast() }
        let kept = scalars.drop { $0 == "." || $0 == "~" || $0.properties.isWhitespace }
        return shortened(String(String.UnicodeScalarView(kept)))
    }

    private static let limit = 200
    private static let dot = UInt8(ascii: ".")

    private static func isDangerous(_ scalar: UnicodeScalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse: true
        default: ":*?\"<>|".unicodeScalars.contains(scalar)
        }
    }

    /// Shortens a name to 200 bytes, because file systems allow 255 bytes, and keeps the extension.
    private static func shortened(_ name: String) -> String {
        guard name.utf8.count > limit else { return name }
        let dot = name.lastIndex(of: ".")
        let ending = dot.map { String(name[$0...]) } ?? ""
        guard let dot, ending.utf8.count <= 20 else { return prefix(of: name, bytes: limit) }
        return prefix(of: String(name[..<dot]), bytes: limit - ending.utf8.count) + ending
    }

    private static func prefix(of text: String, bytes limit: Int) -> String {
        var result = ""
        var count = 0
        for character in text {
            count += character.utf8.count
            guard count <= limit else { break }
            result.append(character)
        }
        guard result.isEmpty else { return result }
        // A single character may be longer than the limit, so cut between its scalars.
        count = 0
        for scalar in text.unicodeScalars {
            count += UTF8.width(scalar)
            guard count <= limit else { break }
            result.unicodeScalars.append(scalar)
        }
        return result
    }
}

/// The file name in a `Content-Disposition` header (RFC 6266, RFC 8187).
package enum ContentDisposition {
    /// Returns the file name as the server sent it, or `nil` if there is no valid name.
    ///
    /// The name is not safe to use. `filename*` takes precedence over `filename`.
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

    /// Drops everything up to and including a character, and ignores that character in quoted strings.
    private static func skip(_ rest: inout ArraySlice<UInt8>, to end: UInt8) {
        while let byte = rest.first, byte != end {
            if byte == UInt8(ascii: "\"") { _ = quoted(&rest) } else { rest = rest.dropFirst() }
        }
        rest = rest.dropFirst()
    }

    private static func token(_ rest: inout ArraySlice<UInt8>) -> [UInt8] {
        // Names with spaces and without quotation marks are common, and their meaning is clear.
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

    /// Decodes a value such as `UTF-8'en'%e2%82%ac%20rates`.
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
