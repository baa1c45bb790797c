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
