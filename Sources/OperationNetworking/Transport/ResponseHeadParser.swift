// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Puts the heads and trailers of a response together from their lines.
///
/// The lines were delimited by whoever read them from the wire. What contradicts itself is refused.
package struct ResponseHeadParser {
    /// The parts of a head.
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
    }

    private enum State {
        case beforeHead
        case head(Head)
        /// A head with a status from 200 on is complete; what comes now is a trailer.
        case afterHead(HeaderFields)
    }

    package enum Event: Equatable {
        case none
        case head(Head)
        case refused(String)
    }

    private var state = State.beforeHead
    private var informationalCount = 0

    package init() {}

    /// The fields after the body, as far as they came.
    package var trailers: HeaderFields {
        if case .afterHead(let fields) = state { fields } else { HeaderFields() }
    }

    package mutating func receive(_ line: UnsafeRawBufferPointer) -> Event {
        let content = line.withoutLineEnd
        // libcurl takes such a line for the end of the head.
        if line.first == 0x0D, !content.isEmpty { return .refused("a line begins with a carriage return") }
        if content.starts(with: "HTTP/".utf8) { return begin(content) }
        switch exchange(&state, with: .beforeHead) {
        case .beforeHead: return content.isEmpty ? .none : .refused("a header field came before the status line")
        case .head(var head):
            guard !content.isEmpty else { return end(head) }
            guard head.fields.append(line: content) else { return .refused("a header field has no name") }
            state = .head(head)
        case .afterHead(var fields):
            if !content.isEmpty { _ = fields.append(line: content) }
            state = .afterHead(fields)
        }
        return .none
    }

    private mutating func begin(_ line: UnsafeRawBufferPointer) -> Event {
        let parts = line.split(separator: 0x20, maxSplits: 2, omittingEmptySubsequences: false)
        guard let version = HTTPVersion(statusLine: parts[0]) else {
            return .refused("the status line has no version")
        }
        guard parts.count >= 2, parts[1].count == 3, parts[1].allSatisfy({ (0x30...0x39).contains($0) }),
            let status = Int(String(decoding: parts[1], as: UTF8.self)), status >= 100
        else { return .refused("the status line has no status") }
        let reason = parts.count > 2 ? String(headerBytes: parts[2]) : ""
        state = .head(Head(status: status, version: version, reason: reason))
        return .none
    }

    private mutating func end(_ head: Head) -> Event {
        if head.status == 101 { return .refused("the server switched to a protocol that nobody asked for") }
        if head.status < 200 {
            informationalCount += 1
            return informationalCount > 100 ? .refused("more than 100 informational responses came") : .head(head)
        }
        if let problem = head.fields.framingProblem { return .refused(problem) }
        state = .afterHead(HeaderFields())
        return .head(head)
    }
}

extension HTTPVersion {
    /// `HTTP/1.1`, or `HTTP/2` as libcurl writes it; nil for anything else, which libcurl would understand in its own way.
    fileprivate init?(statusLine word: Slice<UnsafeRawBufferPointer>) {
        let number = word.dropFirst(5)
        func digit(_ offset: Int) -> Int? {
            let byte = number[number.startIndex + offset]
            return (0x30...0x39).contains(byte) ? Int(byte) - 0x30 : nil
        }
        switch number.count {
        case 1:
            guard let major = digit(0) else { return nil }
            self.init(major, 0)
        case 3:
            guard let major = digit(0), number[number.startIndex + 1] == 0x2E, let minor = digit(2) else { return nil }
            self.init(major, minor)
        default: return nil
        }
    }
}

extension HeaderFields {
    /// Adds the field of a line, or to the last field if the line begins with a blank; false if it has no name.
    fileprivate mutating func append(line: UnsafeRawBufferPointer) -> Bool {
        if line[0] == 0x20 || line[0] == 0x09 {
            guard let last = removeLast() else { return false }
            add(last.name, "\(last.value) \(String(headerBytes: line).trimmedBlanks)".trimmedBlanks)
            return true
        }
        guard let colon = line.firstIndex(of: 0x3A), colon > 0 else { return false }
        var name = line[..<colon]
        while name.last == 0x20 || name.last == 0x09 { name = name.dropLast() }
        let field = String(headerBytes: name)
        add(field, String(headerBytes: line[(colon + 1)...].withoutBlanks, in: field.asciiLowercased))
        return true
    }

    /// Two lengths that differ, or one that is none; or a coding of the transfer that nobody asked for.
    ///
    /// Whoever reads the wire may undo such a coding, and then neither how much came nor where it was cut could be told.
    var framingProblem: String? {
        if contains("Transfer-Encoding") { return codingProblem }
        var lengths = Set<Substring>()
        for value in values("Content-Length") {
            for part in value.split(separator: ",", omittingEmptySubsequences: false) {
                lengths.insert(Substring(String(part).trimmedBlanks))
            }
        }
        if lengths.count > 1 { return "the response states two different lengths" }
        guard let length = lengths.first else { return nil }
        let isNumber = !length.isEmpty && length.utf8.allSatisfy { (0x30...0x39).contains($0) } && Int64(length) != nil
        return isNumber ? nil : "the stated length of the response is none"
    }

    private var codingProblem: String? {
        let codings = values("Transfer-Encoding").flatMap { $0.split(separator: ",") }
            .map { String($0).trimmedBlanks.asciiLowercased }.filter { !$0.isEmpty && $0 != "identity" }
        return codings.isEmpty || codings == ["chunked"]
            ? nil : "the response was coded for the transfer in a way that nobody asked for"
    }
}

extension String {
    /// The value of a field as text.
    ///
    /// What is no UTF-8 would come back as other bytes: in an address it is escaped, which means the same, and a cookie is
    /// left empty, which sets none.
    fileprivate init(headerBytes bytes: some Collection<UInt8>, in field: String) {
        switch field {
        case "set-cookie" where String(validating: bytes, as: UTF8.self) == nil: self = ""
        case "location", "content-location":
            let isText = String(validating: bytes, as: UTF8.self) != nil
            let escaped = bytes.flatMap { isText || $0 < 0x80 ? [$0] : Array("%".utf8) + Hexadecimal.upper($0) }
            self.init(headerBytes: escaped)
        default: self.init(headerBytes: bytes)
        }
    }

    /// Bytes of a head as text: UTF-8, or else each byte as the character of that number (ISO 8859-1).
    fileprivate init(headerBytes bytes: some Collection<UInt8>) {
        if let text = String(validating: bytes, as: UTF8.self) {
            self = text
        } else {
            self = String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
        }
    }
}

extension UnsafeRawBufferPointer {
    fileprivate var withoutLineEnd: UnsafeRawBufferPointer {
        var end = count
        while end > 0, self[end - 1] == 0x0A || self[end - 1] == 0x0D { end -= 1 }
        return UnsafeRawBufferPointer(rebasing: self[..<end])
    }
}

extension Slice<UnsafeRawBufferPointer> {
    fileprivate var withoutBlanks: Self {
        var slice = self
        while slice.first == 0x20 || slice.first == 0x09 { slice = slice.dropFirst() }
        while slice.last == 0x20 || slice.last == 0x09 { slice = slice.dropLast() }
        return slice
    }
}
