// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The directives of `Cache-Control` fields (RFC 9111, section 5.2, RFC 5861, RFC 8246).
package struct CacheControl: Equatable, Sendable {
    private var directives: [String: String?] = [:]

    /// The number of seconds that replaces a larger one.
    ///
    /// RFC 9111 asks for 2³¹ or the largest positive integer that can be represented. This one can be represented where
    /// `Int` has 32 bits, as on Apple Watch.
    static let endless = Int(Int32.max)

    /// Reads the fields; what cannot be read is left out.
    package init(_ fields: [String]) {
        for field in fields {
            for part in Self.split(Array(field.utf8)) { take(part) }
        }
    }

    package init(_ headers: HeaderFields) {
        let fields = headers.values("Cache-Control")
        self.init(fields)
        // The word of HTTP/1.0, which counts where there is nothing newer.
        if fields.isEmpty, headers.values("Pragma").contains(where: { $0.asciiLowercased.contains("no-cache") }) {
            directives["no-cache"] = .some(nil)
        }
    }

    /// Whether a directive is there, with or without a value.
    package func has(_ name: String) -> Bool { directives[name] != nil }

    /// The number of seconds of a directive; zero where it has a value that is none, nil if it is not there.
    package func seconds(_ name: String) -> Int? {
        directives[name].map(Self.number)
    }

    /// How stale a response may be for the request: nil for not at all.
    package var maximumStaleness: Int? {
        guard let value = directives["max-stale"] else { return nil }
        return value == nil ? Self.endless : seconds("max-stale")
    }

    private mutating func take(_ part: ArraySlice<UInt8>) {
        let equals = part.firstIndex(of: UInt8(ascii: "="))
        let name = String(decoding: part[..<(equals ?? part.endIndex)].withoutBlanksAround, as: UTF8.self)
        guard name.isToken else { return }
        let key = name.asciiLowercased
        var value: String?
        if let equals {
            var bytes = part[(equals + 1)...].withoutBlanksAround
            let quote = UInt8(ascii: "\"")
            if bytes.count >= 2, bytes.first == quote, bytes.last == quote { bytes = bytes.dropFirst().dropLast() }
            value = String(decoding: bytes, as: UTF8.self)
        }
        // Of two of one name the one counts that lets less pass.
        if let known = directives[key], Self.number(known) <= Self.number(value) { return }
        directives[key] = .some(value)
    }

    private static func number(_ value: String?) -> Int {
        guard let value, !value.isEmpty, value.utf8.allSatisfy(\.isDigit) else { return 0 }
        return min(Int(value) ?? endless, endless)
    }

    /// Parts at commas outside of quotation marks.
    private static func split(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
        var parts: [ArraySlice<UInt8>] = []
        var start = 0
        var index = 0
        var isQuoted = false
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\""): isQuoted.toggle()
            case UInt8(ascii: "\\") where isQuoted: index += 1
            case UInt8(ascii: ",") where !isQuoted:
                parts.append(bytes[start..<index])
                start = index + 1
            default: break
            }
            index += 1
        }
        return parts + [bytes[start...]]
    }
}
