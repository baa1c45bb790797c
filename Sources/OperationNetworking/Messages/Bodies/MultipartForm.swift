// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A form with several parts, such as text, data, files and streams, in the format `multipart/form-data` (RFC 7578).
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
/// While a `CurlSession` sends the form, it reads the files in chunks and does not copy them. A `URLSession` first
/// writes the whole form to a temporary file. If a file changes before the session has read the whole file, the request
/// fails instead of sending a truncated body. A session can send the form more than once only if it can send each part
/// more than once.
///
/// In names and file names, OperationKit replaces quotation marks with `%22`, and line breaks with `%0D` and `%0A`, as
/// browsers do (WHATWG HTML, "multipart form data"). All other characters are encoded in UTF-8. The content of the
/// parts does not change.
public struct MultipartForm: Sendable {
    /// The text that separates the parts of the form.
    ///
    /// The default boundary contains 128 random bits, so that none of the parts contains the boundary by chance.
    package let boundary: String
    /// The parts of the form, in the order in which the session sends them.
    package private(set) var parts: [Part] = []

    /// Creates an empty form.
    ///
    /// - Parameter boundary: The text that separates the parts. The default is `nil`, which creates a random boundary.
    public init(boundary: String? = nil) {
        self.boundary = boundary ?? Self.newBoundary()
    }

    /// Adds a field that contains text to the form.
    ///
    /// - Parameters:
    ///   - name: The name of the field. A form can contain several fields with the same name.
    ///   - text: The value of the field, which is encoded in UTF-8.
    public mutating func add(_ name: String, _ text: String) {
        add(Part(name: name, body: .data(Data(text.utf8))))
    }

    /// Adds data to the form, as a field or as the content of a file.
    ///
    /// - Parameters:
    ///   - name: The name of the field.
    ///   - data: The data to send.
    ///   - fileName: The name of the file. The default is `nil`, which adds a field instead of a file.
    ///   - contentType: The content type of the part. By default, the extension of the file name determines the type,
    ///     and a part without a file name has no content type.
    public mutating func add(_ name: String, _ data: Data, fileName: String? = nil, contentType: String? = nil) {
        add(Part(name: name, fileName: fileName, contentType: contentType, body: .data(data)))
    }

    /// Adds a file or a part of a file to the form.
    ///
    /// - Parameters:
    ///   - name: The name of the field.
    ///   - file: The file or the part of a file to send.
    ///   - fileName: The file name to send. The default is the name of the file on disk.
    ///   - contentType: The content type of the part. By default, the extension of the file name determines the type.
    public mutating func add(
        _ name: String, file: FileRegion, fileName: String? = nil, contentType: String? = nil
    ) {
        let fileName = fileName ?? file.url.lastPathComponent
        add(Part(name: name, fileName: fileName, contentType: contentType, body: .file(file)))
    }

    /// Adds a part with a body of any kind, such as a stream or JSON, to the form.
    ///
    /// - Parameters:
    ///   - name: The name of the form field.
    ///   - body: The body that contains the data of the part.
    ///   - fileName: The file name to send if the part is a file. The default is `nil`, which sends no file name.
    ///   - contentType: The content type of the part. The default is `nil`, which uses the content type of the body. If
    ///     the body has no content type, the extension of the file name determines the type.
    public mutating func add(
        _ name: String, body: RequestBody, fileName: String? = nil, contentType: String? = nil
    ) {
        add(Part(name: name, fileName: fileName, contentType: contentType, body: body))
    }

    package mutating func add(_ part: Part) {
        parts.append(part)
    }

    private static func newBoundary() -> String {
        let bytes = (0..<16).map { _ in UInt8.random(in: .min ... .max) }
        return "OperationKit-" + Hexadecimal.lower(bytes)
    }
}

extension MultipartForm {
    /// A part of a multipart form, which consists of a name and a body.
    package struct Part: Sendable {
        /// The name of the form field.
        package let name: String
        /// The name of the file, or `nil` if the part is not a file.
        package let fileName: String?
        /// The content type of the part, or `nil` if the part has no content type.
        ///
        /// Servers treat a part without a content type as text.
        package let contentType: String?
        /// The body that contains the data of the part.
        package let body: RequestBody

        /// Creates a part of a multipart form.
        ///
        /// - Parameters:
        ///   - name: The name of the field.
        ///   - fileName: The name of the file if the part is a file. The default is `nil`.
        ///   - contentType: The content type of the part. The default is `nil`, which uses the content type of the
        ///     body. If the body has no content type, the extension of the file name determines the type.
        ///   - body: The body that contains the data of the part.
        package init(name: String, fileName: String? = nil, contentType: String? = nil, body: RequestBody) {
            self.name = name
            self.fileName = fileName
            self.contentType = contentType ?? body.contentType ?? fileName.map { MediaType.ofFile(named: $0) }
            self.body = body
        }

        /// The headers of the part, without the boundary.
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

        /// Returns the text with each line break as CR LF, as web forms write names but not file names.
        private static func withPairedBreaks(_ text: String) -> String {
            var bytes: [UInt8] = []
            var isAfterReturn = false
            for byte in text.utf8 {
                if isAfterReturn != (byte == 0x0A) { bytes.append(isAfterReturn ? 0x0A : 0x0D) }
                // The missing byte was added above: a line feed after a single CR, or a CR before a single line feed.
                bytes.append(byte)
                isAfterReturn = byte == 0x0D
            }
            if isAfterReturn { bytes.append(0x0A) }
            return String(decoding: bytes, as: UTF8.self)
        }
    }
}

extension RequestBody {
    /// Creates a body that contains a multipart form.
    ///
    /// The session reads files and streams in the form only when it sends the body.
    ///
    /// - Throws: A ``NetworkError`` if the boundary or a part is not valid.
    public static func multipart(_ form: MultipartForm) throws(NetworkError) -> RequestBody {
        try checkBoundary(form.boundary)
        for part in form.parts { try check(part) }
        let pieces = form.pieces
        let boundary = form.boundary.isToken ? form.boundary : "\"\(form.boundary)\""
        return RequestBody.stream(
            length: try length(of: pieces), canBeSentAgain: form.parts.allSatisfy(\.body.canBeSentAgain)
        ) {
            MultipartProducer(pieces)
        }.withContentType("multipart/form-data; boundary=\(boundary)")
    }

    /// Creates a body that contains a dictionary as a multipart form or as a URL-encoded form.
    ///
    /// If a value is `Data`, a ``FileRegion``, a ``RequestBody`` or an array that contains an element of one of these
    /// types, the body is a multipart form. Otherwise, the body is URL-encoded. The form contains the fields in the
    /// alphabetical order of the keys.
    ///
    /// In a multipart form, if an array contains `Data`, a ``FileRegion`` or a ``RequestBody``, each element of the
    /// array becomes a separate part. The closure ``FormEncoder/arrayName`` returns the names of these parts.
    ///
    /// - Parameters:
    ///   - dictionary: The names and values of the form.
    ///   - encoder: The encoder that creates the names of array elements and the text of values. The default is an
    ///     encoder with the default settings.
    /// - Throws: A ``NetworkError`` if the encoder cannot encode a value, or if a part of the form is not valid.
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
                    try add(element, as: encoder.arrayName(key, index), to: &multipart, encoder)
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
    ) throws(NetworkError) -> [FormEncoder.Pair] {
        do {
            return try encoder.pairs(of: MixedValue(dictionary))
        } catch {
            throw .unencodable("a form", error)
        }
    }

    /// Returns the number of bytes, or `nil` if the length of a part is unknown.
    private static func length(of pieces: [RequestBody]) throws(NetworkError) -> Int64? {
        var sum: Int64 = 0
        for piece in pieces {
            guard let length = piece.length else { return nil }
            let (next, overflows) = sum.addingReportingOverflow(length)
            guard !overflows else {
                throw NetworkError(
                    code: .bodyLengthMismatch, phase: .checking,
                    message: "The total length of the parts is too large. Check the lengths of the parts.")
            }
            sum = next
        }
        return sum
    }

    private static func check(_ part: MultipartForm.Part) throws(NetworkError) {
        if let type = part.contentType {
            guard !type.isEmpty, type.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
                throw refusal(
                    "The content type of a part is empty, or contains a line break or another control character.")
            }
        }
        guard part.body.contentEncoding == nil else {
            throw refusal(
                "A part of the form is compressed, and a form cannot mark a compressed part. "
                    + "Compress the whole form: .multipart(form).gzipped().")
        }
        guard part.body.length ?? 0 >= 0 else { throw refusal("The length of a part is negative.") }
    }

    /// Checks a boundary against RFC 2046, section 5.1.1.
    private static func checkBoundary(_ boundary: String) throws(NetworkError) {
        let allowed = Set("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'()+_,-./:=? ".utf8)
        guard (1...70).contains(boundary.utf8.count), boundary.utf8.last != 0x20,
            boundary.utf8.allSatisfy(allowed.contains)
        else {
            throw refusal(
                "The boundary is not valid. Use 1 to 70 letters, digits, spaces and characters of '()+_,-./:=? and do "
                    + "not end it with a space."
            )
        }
    }

    private static func refusal(_ message: String) -> NetworkError {
        NetworkError(code: .bodyNotEncodable, phase: .checking, message: message)
    }
}

extension MultipartForm {
    /// The bodies of the parts and the bytes around them, in their order.
    fileprivate var pieces: [RequestBody] {
        var pieces: [RequestBody] = []
        var isFirst = true
        for part in parts {
            pieces.append(.data(Data("\(isFirst ? "" : "\r\n")--\(boundary)\r\n".utf8 + part.head)))
            if !part.body.isNone { pieces.append(part.body) }
            isFirst = false
        }
        return pieces + [.data(Data("\(isFirst ? "" : "\r\n")--\(boundary)--\r\n".utf8))]
    }
}

/// A producer for the bytes of a form, which opens at most one part at a time.
private final class MultipartProducer: BodyProducer {
    private let pieces: [RequestBody]
    // Sendable: two threads never call a producer at the same time.
    private nonisolated(unsafe) var piece = 0
    private nonisolated(unsafe) var reader: BodyReader?

    init(_ pieces: [RequestBody]) {
        self.pieces = pieces
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

    /// Produces bytes of one piece, or no bytes when it proceeds to the next piece.
    private func step(into buffer: UnsafeMutableRawBufferPointer, waker: BodyWaker) throws -> BodyPortion {
        guard piece < pieces.count else { return .end }
        let reader = try self.reader ?? BodyReader(pieces[piece], waker: waker)
        self.reader = reader
        let portion = try reader.read(into: buffer)
        guard portion == .end else { return portion }
        self.reader = nil
        piece += 1
        return .bytes(0)
    }
}
