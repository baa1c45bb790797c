// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A parser that creates the headers and trailers of a response from their lines.
///
/// The transport has already separated the lines. Contradictory headers are rejected.
package struct ResponseHeadParser {
    /// The status line and the headers of a response.
    package struct Head: Equatable {
        package var status: Int
        package var version: HTTPVersion
        package var reason: String
        package var fields: HeaderFields

        package init(status: Int, version: HTTPVersion, reason: String, fields: HeaderFields = HeaderFields()) {
            self.status = status
            self.version = version
            self.reason = reason
            self.fields = fields
        }

        /// Returns whether a body of this length, before decompression, is complete, as far as that is known if the
        /// transport does not report its end.
        package func isBody(of count: Int64, completeFor method: String) -> Bool {
            guard ResponseHead.mayHaveBody(status: status, method: method) else { return true }
            if version >= .http2 || !fields.contains("Transfer-Encoding"), let length = fields["Content-Length"] {
                // Headers that state different lengths were already rejected.
                let first = length.split(separator: ",").first.flatMap { Int64(String($0).trimmedBlanks) }
                return (Int64(length) ?? first).map { count >= $0 } ?? false
            }
            // The transport notices the end of a body that chunks or the end of the connection mark.
            return version < .http2 && count > 0
        }
    }

    private enum Stage {
        case beforeHead
        /// The headers of this response are being parsed.
        case inHead(status: Int, version: HTTPVersion, reason: String)
        /// The headers of a response with status 200 or above are complete, and further lines are trailers.
        case afterHead
    }

    package enum Event: Equatable {
        case none
        case head(Head)
        case refused(String)
    }

    private var stage = Stage.beforeHead
    /// The headers of the response that is being parsed, or its trailers.
    private var fields = HeaderFields()
    private var informationalCount = 0

    package init() {}

    /// The trailers that have arrived so far.
    package var trailers: HeaderFields { if case .afterHead = stage { fields } else { HeaderFields() } }

    package mutating func receive(_ line: UnsafeRawBufferPointer) -> Event {
        let content = line.withoutLineEnd
        // libcurl mistakes such a line for the end of the headers.
        if line.first == 0x0D, !content.isEmpty { return .refused("a line begins with a carriage return") }
        if content.begins(with: "HTTP/") {
            // The transport may mistake the line for a header, and what follows for the body of the response before.
            if case .inHead = stage { return .refused("a status line arrived before the headers were complete") }
            return begin(content)
        }
        switch stage {
        case .beforeHead: return content.isEmpty ? .none : .refused("a header arrived before the status line")
        case .inHead where !content.isEmpty:
            if let problem = fields.append(line: content) { return .refused(problem) }
        case .inHead(let status, let version, let reason):
            let fields = exchange(&fields, with: HeaderFields())
            return end(Head(status: status, version: version, reason: reason, fields: fields))
        case .afterHead:
            if !content.isEmpty { _ = fields.append(line: content) }
        }
        return .none
    }

    private mutating func begin(_ line: UnsafeRawBufferPointer) -> Event {
        let words = line.dropFirst(5)
        let versionEnd = words.firstIndex(of: 0x20) ?? words.endIndex
        guard let version = HTTPVersion(number: UnsafeRawBufferPointer(rebasing: words[..<versionEnd])) else {
            return .refused("the status line has no version")
        }
        let rest = UnsafeRawBufferPointer(rebasing: words[versionEnd...].dropFirst())
        guard rest.count > 3 ? rest[3] == 0x20 : rest.count == 3, let status = rest.statusNumber else {
            return .refused("the status line has no status")
        }
        let text = rest.count > 4 ? String(headerBytes: UnsafeRawBufferPointer(rebasing: rest[4...])) : ""
        stage = .inHead(status: status, version: version, reason: text.withoutControls)
        fields = HeaderFields()
        fields.reserveCapacity(12)
        return .none
    }

    private mutating func end(_ head: Head) -> Event {
        if head.status == 101 { return .refused("the server switched to a protocol that the request did not ask for") }
        if head.status < 200 {
            stage = .beforeHead
            informationalCount += 1
            return informationalCount > 100
                ? .refused("the server sent more than 100 informational responses") : .head(head)
        }
        if let problem = head.fields.framingProblem { return .refused(problem) }
        stage = .afterHead
        return .head(head)
    }
}

extension UnsafeRawBufferPointer {
    /// The number in the first three bytes, or `nil` if they are not a status.
    fileprivate var statusNumber: Int? {
        var number = 0
        for byte in self[..<3] {
            guard (0x30...0x39).contains(byte) else { return nil }
            number = number * 10 + Int(byte) - 0x30
        }
        return number >= 100 ? number : nil
    }
}

extension HTTPVersion {
    /// Parses `1.1`, or `2` as libcurl writes it, and rejects anything else, which libcurl may interpret differently.
    fileprivate init?(number: UnsafeRawBufferPointer) {
        func digit(_ index: Int) -> Int? {
            (0x30...0x39).contains(number[index]) ? Int(number[index]) - 0x30 : nil
        }
        switch number.count {
        case 1:
            guard let major = digit(0) else { return nil }
            self.init(major, 0)
        case 3:
            guard let major = digit(0), number[1] == 0x2E, let minor = digit(2) else { return nil }
            self.init(major, minor)
        default: return nil
        }
    }
}

extension HeaderFields {
    /// Adds the header in a line, or a continuation line to the last header, and returns a problem if there is one.
    fileprivate mutating func append(line: UnsafeRawBufferPointer) -> String? {
        if line[0].isBlank {
            guard let last = removeLast() else { return "a header has no name" }
            add(last.name, "\(last.value) \(String(headerBytes: line).withoutControls.trimmedBlanks)".trimmedBlanks)
            return nil
        }
        guard let colon = line.firstIndex(of: 0x3A), colon > 0 else { return "a header has no name" }
        let name = UnsafeRawBufferPointer(rebasing: line[..<colon]).withoutBlanks
        guard !name.hasControls else { return "the name of a header contains a control character" }
        let value = UnsafeRawBufferPointer(rebasing: line[(colon + 1)...]).withoutBlanks
        guard value.hasControls else {
            add(String(headerBytes: name), String(headerBytes: value, ofField: name))
            return nil
        }
        // Another reader of the same bytes could find another framing in them.
        if name.isName("content-length") || name.isName("transfer-encoding") {
            return "the Content-Length or Transfer-Encoding header contains a control character"
        }
        // A cookie with a control character is not valid (RFC 6265bis, 5.7). In other values such a character becomes a
        // blank (RFC 9110, 5.5).
        let text = name.isName("set-cookie") ? "" : String(headerBytes: value, ofField: name).withoutControls
        add(String(headerBytes: name), text.trimmedBlanks)
        return nil
    }

    /// A problem with the length or the transfer coding of the body, or `nil` if there is none.
    ///
    /// The transport might undo a transfer coding that was not requested. Then neither the length of the body nor a
    /// premature end would be known.
    var framingProblem: String? {
        var count = 0
        for field in self {
            switch field.name.utf8.count {
            case 17 where field.isNamed("Transfer-Encoding"): return codingProblem
            case 14 where field.isNamed("Content-Length"):
                // Most responses state one plain number.
                count += field.value.isPlainNumber ? 1 : 2
            default: break
            }
        }
        return count > 1 ? lengthProblem : nil
    }

    private var lengthProblem: String? {
        var lengths = Set<Substring>()
        for value in values("Content-Length") {
            for part in value.split(separator: ",", omittingEmptySubsequences: false) {
                lengths.insert(Substring(String(part).trimmedBlanks))
            }
        }
        if lengths.count > 1 { return "the response states two different lengths" }
        guard let length = lengths.first else { return nil }
        let isNumber = !length.isEmpty && length.utf8.allSatisfy { (0x30...0x39).contains($0) } && Int64(length) != nil
        return isNumber ? nil : "the stated length of the response is not a valid number"
    }

    private var codingProblem: String? {
        let codings = values("Transfer-Encoding").flatMap { $0.split(separator: ",") }
            .map { String($0).trimmedBlanks.asciiLowercased }.filter { !$0.isEmpty && $0 != "identity" }
        return codings.isEmpty || codings == ["chunked"]
            ? nil : "the response has a transfer coding that the request did not ask for"
    }
}

extension String {
    /// Whether the text consists of digits only, and of so few that the number cannot overflow.
    fileprivate var isPlainNumber: Bool {
        guard (1...18).contains(utf8.count) else { return false }
        return utf8.allSatisfy { (0x30...0x39).contains($0) }
    }

    /// The text with a blank in place of each control character except tabs.
    var withoutControls: String {
        guard utf8.contains(where: { $0.isControl && $0 != 0x09 }) else { return self }
        let bytes = utf8.map { $0.isControl && $0 != 0x09 ? 0x20 : $0 }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Creates the text of a header value.
    ///
    /// Bytes that are not UTF-8 could not be sent back unchanged. In a URL they are percent-encoded, which has the same
    /// meaning. A cookie with such bytes becomes empty, so that it is not set.
    fileprivate init(headerBytes bytes: UnsafeRawBufferPointer, ofField name: UnsafeRawBufferPointer) {
        if bytes.isASCII || String(validating: bytes, as: UTF8.self) != nil {
            self = String(decoding: bytes, as: UTF8.self)
        } else if name.isName("set-cookie") {
            self = ""
        } else if name.isName("location") || name.isName("content-location") {
            let escaped = bytes.flatMap { $0 < 0x80 ? [$0] : Array("%".utf8) + Hexadecimal.upper($0) }
            self = String(decoding: escaped, as: UTF8.self)
        } else {
            self.init(headerBytes: bytes)
        }
    }

    /// Creates text from header bytes in UTF-8, or in ISO 8859-1 if the bytes are not valid UTF-8.
    fileprivate init(headerBytes bytes: UnsafeRawBufferPointer) {
        if bytes.isASCII {
            self = String(decoding: bytes, as: UTF8.self)
        } else if let text = String(validating: bytes, as: UTF8.self) {
            self = text
        } else {
            self = String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
        }
    }
}

extension UnsafeRawBufferPointer {
    fileprivate var isASCII: Bool {
        var all: UInt8 = 0
        for byte in self { all |= byte }
        return all < 0x80
    }

    /// Whether there is a control character other than a tab.
    fileprivate var hasControls: Bool { contains { $0.isControl && $0 != 0x09 } }

    fileprivate func isName(_ name: StaticString) -> Bool {
        isSameName(as: UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
    }

    fileprivate var withoutLineEnd: UnsafeRawBufferPointer {
        var end = count
        while end > 0, self[end - 1] == 0x0A || self[end - 1] == 0x0D { end -= 1 }
        return UnsafeRawBufferPointer(rebasing: self[..<end])
    }

    fileprivate var withoutBlanks: UnsafeRawBufferPointer {
        var (start, end) = (0, count)
        while start < end, self[start].isBlank { start += 1 }
        while start < end, self[end - 1].isBlank { end -= 1 }
        return UnsafeRawBufferPointer(rebasing: self[start..<end])
    }
}
