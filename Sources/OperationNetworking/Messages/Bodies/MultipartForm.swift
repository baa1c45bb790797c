// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A form of several parts, each of them text, bytes, a file or a stream: `multipart/form-data` (RFC 7578).
///
/// ```swift
/// func photo(at url: URL) throws(NetworkError) -> RequestBody {
///     var form = MultipartForm()
///     form.add("title", "On the beach")
///     form.add("photo", file: try FileRegion(url))
///     return try .multipart(form)
/// }
/// ```
///
/// Nothing is copied: files are read while they are sent, one portion at a time, and the length of the whole is known
/// beforehand wherever that of each part is. It can be sent again if each part can. A file that changes before its last
/// byte was sent is an error, never a body that is cut.
///
/// Names and file names are escaped as the forms of the web are (WHATWG HTML, "multipart form data"): quotation marks and
/// line breaks become `%22`, `%0D` and `%0A`, and all else stays as it is, in UTF-8. Texts and bytes are sent as they are.
public struct MultipartForm: Sendable {
    /// What stands between the parts.
    ///
    /// It has 128 random bits in it unless it was chosen: no part has it in it by chance.
    public let boundary: String
    /// The parts in their order.
    public private(set) var parts: [Part] = []

    /// Makes an empty form.
    ///
    /// - Parameter boundary: What stands between the parts, where somebody has agreed upon it.
    public init(boundary: String? = nil) {
        self.boundary = boundary ?? Self.newBoundary()
    }

    /// Adds a text.
    public mutating func add(_ name: String, _ text: String) {
        add(Part(name: name, body: .data(Data(text.utf8))))
    }

    /// Adds bytes: as a file if they have a file name.
    ///
    /// - Parameters:
    ///   - name: The name of the field.
    ///   - data: The bytes.
    ///   - fileName: What the server is told; without one they are no file.
    ///   - contentType: What they are; told by the ending of the file name if nil.
    public mutating func add(_ name: String, _ data: Data, fileName: String? = nil, contentType: String? = nil) {
        add(Part(name: name, fileName: fileName, contentType: contentType, body: .data(data)))
    }

    /// Adds a file.
    ///
    /// - Parameters:
    ///   - name: The name of the field.
    ///   - file: Where the bytes are.
    ///   - fileName: What the server is told; the file's own name if nil.
    ///   - contentType: What it is; told by the ending of the file name if nil.
    public mutating func add(
        _ name: String, file: FileRegion, fileName: String? = nil, contentType: String? = nil
    ) {
        let fileName = fileName ?? file.url.lastPathComponent
        add(Part(name: name, fileName: fileName, contentType: contentType, body: .file(file)))
    }

    /// Adds a part of any kind: a stream, say, or JSON.
    public mutating func add(_ part: Part) {
        parts.append(part)
    }

    private static func newBoundary() -> String {
        let bytes = (0..<16).map { _ in UInt8.random(in: .min ... .max) }
        return "OperationKit-" + Hexadecimal.lower(bytes)
    }
}

extension MultipartForm {
    /// One name and what belongs to it.
    public struct Part: Sendable {
        /// The name of the field.
        public let name: String
        /// The name of the file, for the server to know one by.
        public let fileName: String?
        /// What the bytes are; servers take a part without it for text.
        public let contentType: String?
        /// The bytes.
        public let body: RequestBody

        /// Makes a part.
        ///
        /// - Parameters:
        ///   - name: The name of the field.
        ///   - fileName: The name of the file, if it is to be one.
        ///   - contentType: What the bytes are. If nil, the body's own word counts, then the ending of the file name.
        ///   - body: The bytes.
        public init(name: String, fileName: String? = nil, contentType: String? = nil, body: RequestBody) {
            self.name = name
            self.fileName = fileName
            self.contentType = contentType ?? body.contentType ?? fileName.map { MediaType.ofFile(named: $0) }
            self.body = body
        }

        /// The lines before the bytes, without the boundary.
        var head: [UInt8] {
            var text = "Content-Disposition: form-data; name=\"\(Self.escaped(Self.withPairedBreaks(name)))\""
            if let fileName { text += "; filename=\"\(Self.escaped(fileName))\"" }
            text += "\r\n"
            if let contentType { text += "Content-Type: \(contentType)\r\n" }
            return Array((text + "\r\n").utf8)
        }

        private static func escaped(_ text: String) -> String {
            var bytes: [UInt8] = []
            for byte in text.utf8 {
                switch byte {
                case 0x22: bytes += "%22".utf8
                case 0x0D: bytes += "%0D".utf8
                case 0x0A: bytes += "%0A".utf8
                default: bytes.append(byte)
                }
            }
            return String(decoding: bytes, as: UTF8.self)
        }

        /// Each line break as CR and LF, as the web has them in names (but not in file names).
        private static func withPairedBreaks(_ text: String) -> String {
            var bytes: [UInt8] = []
            var isAfterReturn = false
            for byte in text.utf8 {
                if isAfterReturn != (byte == 0x0A) { bytes.append(isAfterReturn ? 0x0A : 0x0D) }
                // What was missing stands there now: after a return alone the feed, before a feed alone the return.
                bytes.append(byte)
                isAfterReturn = byte == 0x0D
            }
            if isAfterReturn { bytes.append(0x0A) }
            return String(decoding: bytes, as: UTF8.self)
        }
    }
}

extension RequestBody {
    /// A form of several parts, streamed.
    public static func multipart(_ form: MultipartForm) throws(NetworkError) -> RequestBody {
        try checkBoundary(form.boundary)
        for part in form.parts { try check(part) }
        let plan = MultipartPlan(form)
        return RequestBody.stream(
            length: try plan.length(), canBeSentAgain: form.parts.allSatisfy(\.body.canBeSentAgain)
        ) {
            MultipartProducer(plan)
        }.withContentType("multipart/form-data; boundary=\(quoted(form.boundary))")
    }

    /// A dictionary as a form: of several parts if one of its values is binary, else URL-encoded.
    ///
    /// Binary are `Data`, a ``FileRegion``, a ``RequestBody`` and arrays with any of these in them, whose elements become
    /// parts of their own, named as ``FormEncoder/arrays`` says. All others are written as ``FormEncoder`` writes them, and
    /// everything comes in the alphabetical order of the keys.
    public static func fields(
        _ dictionary: [String: Any?], encoder: FormEncoder = FormEncoder()
    ) throws(NetworkError) -> RequestBody {
        guard dictionary.values.contains(where: { isBinary($0) || hasBinaries($0) }) else {
            return try form(dictionary, encoder: encoder)
        }
        var multipart = MultipartForm()
        for (key, value) in dictionary.sorted(by: { $0.key < $1.key }) {
            if let list = value as? [Any], hasBinaries(list) {
                for (index, element) in list.enumerated() {
                    try add(element, as: encoder.arrays.name(key, index), to: &multipart, encoder)
                }
            } else {
                try add(value, as: key, to: &multipart, encoder)
            }
        }
        return try .multipart(multipart)
    }

    private static func isBinary(_ value: Any?) -> Bool {
        value is Data || value is FileRegion || value is RequestBody
    }

    private static func hasBinaries(_ value: Any?) -> Bool { (value as? [Any])?.contains(where: isBinary) ?? false }

    private static func add(
        _ value: Any?, as name: String, to form: inout MultipartForm, _ encoder: FormEncoder
    ) throws(NetworkError) {
        switch value {
        case let data as Data: form.add(name, data, fileName: name)
        case let file as FileRegion: form.add(name, file: file)
        case let body as RequestBody: form.add(.init(name: name, body: body))
        default: for pair in try pairs([name: value], encoder) { form.add(pair.name, pair.value) }
        }
    }

    private static func pairs(
        _ dictionary: [String: Any?], _ encoder: FormEncoder
    ) throws(NetworkError) -> [FormWriter.Pair] {
        do {
            return try encoder.pairs(of: MixedValue(dictionary))
        } catch {
            throw .unencodable("a form", error)
        }
    }

    private static func check(_ part: MultipartForm.Part) throws(NetworkError) {
        if let type = part.contentType {
            guard !type.isEmpty, type.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
                throw refusal(
                    "The content type of a part is empty or has a line break or another control character in it.")
            }
        }
        guard part.body.contentEncoding == nil else {
            throw refusal(
                "A part of a form is compressed, and a form cannot say so. Compress the whole form: "
                    + ".multipart(form).gzipped().")
        }
        guard part.body.length ?? 0 >= 0 else { throw refusal("The length of a part is negative.") }
    }

    /// RFC 2046, section 5.1.1.
    private static func checkBoundary(_ boundary: String) throws(NetworkError) {
        let allowed = Set("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'()+_,-./:=? ".utf8)
        guard (1...70).contains(boundary.utf8.count), boundary.utf8.last != 0x20,
            boundary.utf8.allSatisfy(allowed.contains)
        else {
            throw refusal(
                "The boundary is none: choose 1 to 70 letters, digits and signs of '()+_,-./:=? that do not end in a space."
            )
        }
    }

    private static func quoted(_ boundary: String) -> String { boundary.isToken ? boundary : "\"\(boundary)\"" }

    private static func refusal(_ message: String) -> NetworkError {
        NetworkError(code: .bodyNotEncodable, phase: .checking, message: message)
    }
}

/// The pieces of a form in their order: what stands around the parts, and the parts themselves.
struct MultipartPlan: Sendable {
    enum Piece: Sendable {
        case bytes([UInt8])
        case body(RequestBody)
    }

    let pieces: [Piece]

    init(_ form: MultipartForm) {
        var pieces: [Piece] = []
        var isFirst = true
        for part in form.parts {
            pieces.append(.bytes(Array("\(isFirst ? "" : "\r\n")--\(form.boundary)\r\n".utf8) + part.head))
            if !part.body.isNone { pieces.append(.body(part.body)) }
            isFirst = false
        }
        pieces.append(.bytes(Array("\(isFirst ? "" : "\r\n")--\(form.boundary)--\r\n".utf8)))
        self.pieces = pieces
    }

    /// How many bytes there are; nil if one of the parts does not know its length.
    func length() throws(NetworkError) -> Int64? {
        var sum: Int64 = 0
        for piece in pieces {
            let count: Int64
            switch piece {
            case .bytes(let bytes): count = Int64(bytes.count)
            case .body(let body):
                guard let length = body.length else { return nil }
                count = length
            }
            let (next, overflows) = sum.addingReportingOverflow(count)
            guard !overflows else {
                throw NetworkError(
                    code: .bodyLengthMismatch, phase: .checking,
                    message: "The parts are longer together than any body can be. Check their lengths.")
            }
            sum = next
        }
        return sum
    }
}

/// Gives the bytes of a form, with at most one of its parts open at a time.
final class MultipartProducer: BodyProducer {
    private enum Place {
        /// Before the first byte of a piece.
        case before(Int)
        case bytes([UInt8], used: Int, piece: Int)
        case body(BodyReader, piece: Int)
    }

    private let plan: MultipartPlan
    // Sendable: a producer is never asked by two threads at once.
    private nonisolated(unsafe) var place = Place.before(0)

    init(_ plan: MultipartPlan) {
        self.plan = plan
    }

    func produce(into buffer: UnsafeMutableRawBufferPointer, waker: BodyWaker) throws -> BodyPortion {
        var filled = 0
        while filled < buffer.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
            switch try step(into: rest, waker: waker) {
            case .bytes(let count): filled += count
            case .notYet: return filled > 0 ? .bytes(filled) : .notYet
            case .end: return filled > 0 ? .bytes(filled) : .end
            }
        }
        return .bytes(filled)
    }

    /// Gives the bytes of one piece; zero of them when it goes on to the next.
    private func step(into buffer: UnsafeMutableRawBufferPointer, waker: BodyWaker) throws -> BodyPortion {
        switch place {
        case .before(let piece):
            guard piece < plan.pieces.count else { return .end }
            switch plan.pieces[piece] {
            case .bytes(let bytes): place = .bytes(bytes, used: 0, piece: piece)
            case .body(let body): place = .body(try BodyReader(body, waker: waker), piece: piece)
            }
            return .bytes(0)
        case .bytes(let bytes, let used, let piece):
            let count = min(bytes.count - used, buffer.count)
            buffer.copyBytes(from: bytes[used..<used + count])
            place = used + count == bytes.count ? .before(piece + 1) : .bytes(bytes, used: used + count, piece: piece)
            return .bytes(count)
        case .body(let reader, let piece):
            let portion = try reader.read(into: buffer)
            guard portion == .end else { return portion }
            place = .before(piece + 1)
            return .bytes(0)
        }
    }
}
