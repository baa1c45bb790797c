// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Reads the lines of a head, and notes what is wrong with them.
enum HeadReader {
    typealias Notices = ArraySlice<(LoopbackViolation.Code, String)>

    /// The head; nil if it cannot be read.
    static func read(_ bytes: [UInt8], noting notices: inout Notices) -> RequestHead? {
        var lines = bytes.split(separator: 10, omittingEmptySubsequences: false).dropLast()
        guard let first = lines.popFirst() else { return nil }
        // The empty line at the end is one of them.
        if let last = lines.popLast(), last.last != 13 { notices.append((.lineEnd, "the empty line")) }
        guard let (method, target, version) = requestLine(stripped(first, noting: &notices)) else {
            notices.append((.requestLine, quoted(first)))
            return nil
        }
        let fields = lines.compactMap { field(stripped($0, noting: &notices), noting: &notices) }
        if version == "HTTP/1.1" { checkHost(fields, noting: &notices) }
        return RequestHead(
            method: method, target: target, version: version, fields: fields, bytes: bytes,
            length: length(fields, noting: &notices))
    }

    /// The field in a line; nil if there is none.
    static func field(_ line: ArraySlice<UInt8>, noting notices: inout Notices) -> LoopbackField? {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else {
            notices.append((.field, quoted(line)))
            return nil
        }
        let name = line[..<colon]
        let value = trimmed(line[(colon + 1)...])
        let isSound = !name.isEmpty && name.allSatisfy(isToken) && value.allSatisfy { $0 >= 32 && $0 != 127 || $0 == 9 }
        if !isSound { notices.append((.field, quoted(line))) }
        return LoopbackField(String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self))
    }

    /// Bytes as they can be read in a sentence.
    static func quoted(_ bytes: ArraySlice<UInt8>) -> String {
        let text = String(decoding: bytes.prefix(200), as: UTF8.self)
        return text.debugDescription + (bytes.count > 200 ? "…" : "")
    }

    private static func stripped(_ line: ArraySlice<UInt8>, noting notices: inout Notices) -> ArraySlice<UInt8> {
        if line.last == 13 { return line.dropLast() }
        notices.append((.lineEnd, quoted(line)))
        return line
    }

    private static func requestLine(_ line: ArraySlice<UInt8>) -> (String, String, String)? {
        let parts = line.split(separator: 32, omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[0].isEmpty, parts[0].allSatisfy(isToken), !parts[1].isEmpty,
            parts[1].allSatisfy({ $0 > 32 && $0 < 127 })
        else { return nil }
        let version = String(decoding: parts[2], as: UTF8.self)
        guard version == "HTTP/1.1" || version == "HTTP/1.0" else { return nil }
        return (String(decoding: parts[0], as: UTF8.self), String(decoding: parts[1], as: UTF8.self), version)
    }

    private static func checkHost(_ fields: [LoopbackField], noting notices: inout Notices) {
        let hosts = fields.values("Host")
        if hosts.count != 1 || hosts[0].isEmpty { notices.append((.host, "\(hosts)")) }
    }

    private static func length(_ fields: [LoopbackField], noting notices: inout Notices) -> RequestHead.Length {
        let lengths = fields.values("Content-Length")
        let codings = fields.values("Transfer-Encoding")
        if !codings.isEmpty {
            if codings.map({ $0.lowercased() }) != ["chunked"] || !lengths.isEmpty {
                notices.append((.length, "Transfer-Encoding \(codings), Content-Length \(lengths)"))
            }
            return .chunks
        }
        guard let first = lengths.first else { return .none }
        let isNumber = !first.isEmpty && first.utf8.allSatisfy { (48...57).contains($0) }
        guard lengths.count == 1, isNumber, let count = Int(first) else {
            notices.append((.length, "Content-Length \(lengths)"))
            return Int(first).map { .bytes(max($0, 0)) } ?? .none
        }
        return .bytes(count)
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let start = bytes.drop { $0 == 32 || $0 == 9 }
        guard let last = start.lastIndex(where: { $0 != 32 && $0 != 9 }) else { return [] }
        return start[...last]
    }

    private static func isToken(_ byte: UInt8) -> Bool { tokens[Int(byte)] }

    private static let tokens: [Bool] = (0..<256).map { byte in
        switch UInt8(byte) {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        case let other: Array("!#$%&'*+-.^_`|~".utf8).contains(other)
        }
    }
}
