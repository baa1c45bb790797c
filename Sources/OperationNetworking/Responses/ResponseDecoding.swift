// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Decodes a body according to the result type, for endpoints and for operations without an evaluator.
enum DecodedBody {
    /// Returns data without changes, text in its character set, and every other type decoded from JSON.
    ///
    /// An optional is `nil` if there is no body.
    static func read<Result: Decodable>(
        _ data: Data, _ contentType: @autoclosure () -> String?, _ makeDecoder: () -> JSONDecoder
    ) throws -> Result {
        if data.isEmpty, let optional = Result.self as? any ExpressibleByNilLiteral.Type,
            let nothing = optional.init(nilLiteral: ()) as? Result
        {
            return nothing
        }
        if let data = data as? Result { return data }
        if Result.self == String.self || Result.self == String?.self,
            let text = try Self.text(data, contentType()) as? Result
        {
            return text
        }
        if let nothing = NoContent() as? Result { return nothing }
        guard !data.isEmpty else {
            throw NetworkError(
                code: .emptyResponse, phase: .evaluating,
                message: "The server sent no body. Use NoContent or an optional as the result, or set emptyResult.")
        }
        return try makeDecoder().decode(Result.self, from: data)
    }

    /// Returns the same for a type that is only known at run time.
    static func read<Model: Decodable, Result>(
        _ type: Model.Type, as result: Result.Type, _ data: Data, _ head: ResponseHead,
        _ makeDecoder: () -> JSONDecoder
    ) throws -> Result? {
        let model: Model = try read(data, head.contentType, makeDecoder)
        return model as? Result
    }
}

/// A result type for requests whose responses have no relevant content.
public struct NoContent: Codable, Sendable, Hashable {
    /// Creates a value that represents a response without relevant content.
    public init() {}

    /// Creates a value without reading data from the decoder.
    public init(from decoder: any Decoder) {}

    /// Encodes an empty object into the encoder.
    public func encode(to encoder: any Encoder) throws {
        _ = encoder.container(keyedBy: DataKey.self)
    }
}

// The text of a body, decoded with the character set of its content type.
extension DecodedBody {
    private static let encodings: [String: String.Encoding] = [
        "utf-8": .utf8, "utf8": .utf8, "us-ascii": .ascii, "ascii": .ascii, "iso-8859-1": .isoLatin1,
        "latin1": .isoLatin1, "iso-8859-2": .isoLatin2, "windows-1252": .windowsCP1252, "cp1252": .windowsCP1252,
        "windows-1250": .windowsCP1250, "windows-1251": .windowsCP1251, "utf-16": .utf16,
        "utf-16le": .utf16LittleEndian, "utf-16be": .utf16BigEndian, "utf-32": .utf32,
    ]

    /// Returns the text, decoded as UTF-8 if no character set is named.
    ///
    /// A UTF-8 byte order mark is left out.
    private static func text(_ data: Data, _ contentType: String?) throws(NetworkError) -> String {
        let name = contentType.flatMap(charset)
        guard let encoding = name.map({ encodings[$0] }) ?? .utf8 else {
            throw refusal("The text is in the character set \(name?.prefix(40) ?? ""), which is not supported.")
        }
        let bytes = encoding == .utf8 && data.starts(with: [0xEF, 0xBB, 0xBF]) ? data.dropFirst(3) : data
        guard let text = String(bytes: bytes, encoding: encoding) else {
            throw refusal("The body is not valid text in the character set \(name ?? "utf-8").")
        }
        return text
    }

    private static func charset(_ contentType: String) -> String? {
        for parameter in contentType.split(separator: ";").dropFirst() {
            let parts = parameter.split(separator: "=", maxSplits: 1).map { String($0).trimmedBlanks }
            guard parts.count == 2, parts[0].lowercased() == "charset" else { continue }
            return parts[1].trimmingCharacters(in: ["\""]).lowercased()
        }
        return nil
    }

    private static func refusal(_ message: String) -> NetworkError {
        NetworkError(
            code: .undecodableResult, phase: .evaluating,
            message: "\(message) Use Data as the result, and decode the text yourself.")
    }
}

extension HTTPURLResponse {
    var contentType: String? { value(forHTTPHeaderField: "Content-Type") }
}

extension ResponseHead {
    /// The content type of the body as Foundation returns it, with several headers of that name joined by commas.
    var contentType: String { headers.values("Content-Type").joined(separator: ", ") }
}

#if canImport(ImageIO)
    import CoreGraphics
    import ImageIO

    /// An image that Image I/O has decoded.
    public struct DecodedImage: @unchecked Sendable {
        // Sendable: images of Core Graphics do not change.

        /// The decoded image, which you can pass to `UIImage(cgImage:)` or `NSImage(cgImage:size:)`.
        public let cgImage: CGImage
    }

    extension ImageData {
        /// Decodes the image with Image I/O on the calling thread.
        ///
        /// - Throws: A ``NetworkError`` with the code ``NetworkError/Code/undecodableResult`` if Image I/O cannot
        ///   decode the image.
        public func decoded() throws(NetworkError) -> DecodedImage {
            let options = [kCGImageSourceShouldCacheImmediately: true] as CFDictionary
            guard let source = CGImageSourceCreateWithData(data as CFData, nil),
                let image = CGImageSourceCreateImageAtIndex(source, 0, options)
            else {
                throw NetworkError(
                    code: .undecodableResult, phase: .evaluating,
                    message: "The system cannot decode the image (\(format)). It may be damaged.")
            }
            return DecodedImage(cgImage: image)
        }
    }
#endif

/// The data of an image in the format in which the server sent it.
///
/// ```swift
/// func cover(of album: Int, at shop: NetworkBase) -> EndpointOperation<ImageData>
/// {
///     shop.image("albums/\(album)/cover")
/// }
/// ```
///
/// If the response body is not an image, for example because it is an error page, an operation with this result type
/// fails. On Apple platforms, `decoded()` creates a Core Graphics image. Foundation on Linux cannot decode images, so
/// pass the data to another library.
public struct ImageData: Sendable, Hashable {
    /// The data of the image, as the server sent it.
    public let data: Data
    /// The format of the image according to its data, regardless of the content type in the response.
    package let format: ImageFormat

    /// The media type of the image according to its data, such as `image/png`.
    ///
    /// The value does not depend on the content type in the response.
    public var mediaType: String { format.mediaType }

    /// Creates an image from data and detects its format.
    ///
    /// - Parameter data: The content of an image file.
    /// - Throws: A ``NetworkError`` with the code ``NetworkError/Code/undecodableResult`` if the data is not an image
    ///   in a known format.
    public init(_ data: Data) throws(NetworkError) {
        guard let format = ImageFormat(of: data) else {
            throw NetworkError(
                code: .undecodableResult, phase: .evaluating,
                message: "The body is not an image in a known format. Check the URL.")
        }
        self.data = data
        self.format = format
    }
}

/// An image format, such as PNG, that the first bytes of the data identify.
package struct ImageFormat: Sendable, Hashable, CustomStringConvertible {
    /// The media type of the image format, such as `image/png`.
    package let mediaType: String

    /// The PNG image format.
    package static let png = ImageFormat(mediaType: "image/png")
    /// The JPEG image format.
    package static let jpeg = ImageFormat(mediaType: "image/jpeg")
    /// The GIF image format.
    package static let gif = ImageFormat(mediaType: "image/gif")
    /// The WebP image format.
    package static let webP = ImageFormat(mediaType: "image/webp")
    /// The HEIC image format and other kinds of HEIF.
    package static let heic = ImageFormat(mediaType: "image/heic")
    /// The AVIF image format.
    package static let avif = ImageFormat(mediaType: "image/avif")
    /// The TIFF image format.
    package static let tiff = ImageFormat(mediaType: "image/tiff")
    /// The BMP image format.
    package static let bmp = ImageFormat(mediaType: "image/bmp")
    /// The ICO image format, which Windows icons and website icons use.
    package static let icon = ImageFormat(mediaType: "image/x-icon")
    /// The SVG image format, which is a text format.
    package static let svg = ImageFormat(mediaType: "image/svg+xml")

    /// The media type of the image format.
    package var description: String { mediaType }

    private init(mediaType: String) {
        self.mediaType = mediaType
    }

    /// Detects the format of an image from its data, or returns `nil` if the data is not an image in a known format.
    package init?(of data: Data) {
        let bytes = [UInt8](data.prefix(Self.looksAt))
        if let format = Self.signatures.first(where: { bytes.starts(with: $0.bytes) })?.format {
            self = format
        } else if bytes.count >= 12, bytes.starts(with: "RIFF".utf8), bytes[8..<12].elementsEqual("WEBP".utf8) {
            self = .webP
        } else if bytes.count >= 12, bytes[4..<8].elementsEqual("ftyp".utf8),
            let format = Self.brands[String(decoding: bytes[8..<12], as: UTF8.self)]
        {
            self = format
        } else if Self.isBitmap(bytes) {
            self = .bmp
        } else if MarkupStart([UInt8](data.prefix(Self.looksAtInMarkup))).element == "svg" {
            self = .svg
        } else {
            return nil
        }
    }

    private static let looksAt = 1_024
    /// The number of bytes in which the first element must begin, because a long comment can precede it.
    private static let looksAtInMarkup = 64 << 10

    private static let signatures: [(bytes: [UInt8], format: ImageFormat)] = [
        ([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A], .png), ([0xFF, 0xD8, 0xFF], .jpeg),
        (Array("GIF87a".utf8), .gif), (Array("GIF89a".utf8), .gif), ([0x49, 0x49, 0x2A, 0], .tiff),
        ([0x4D, 0x4D, 0, 0x2A], .tiff), ([0, 0, 1, 0], .icon),
    ]

    private static let brands: [String: ImageFormat] = [
        "heic": .heic, "heix": .heic, "heim": .heic, "heis": .heic, "mif1": .heic, "avif": .avif, "avis": .avif,
    ]

    /// The possible lengths of the second header of a BMP, which identify the version.
    private static let bitmapHeaders: Set = [12, 16, 40, 52, 56, 64, 108, 124]

    /// Returns whether the bytes are a BMP, because any text may begin with the same two letters.
    private static func isBitmap(_ bytes: [UInt8]) -> Bool {
        guard bytes.starts(with: "BM".utf8), bytes.count >= 18 else { return false }
        func number(at place: Int) -> Int { bytes[place..<place + 4].reversed().reduce(0) { $0 << 8 | Int($1) } }
        let header = number(at: 14)
        return bitmapHeaders.contains(header) && number(at: 10) >= 14 + header
    }
}

/// The beginning of an XML or HTML text, up to its first element.
struct MarkupStart {
    private var rest: Substring

    init(_ bytes: [UInt8]) {
        rest = String(decoding: bytes, as: UTF8.self)[...]
    }

    /// The name of the first element without its prefix, or `nil` if anything invalid precedes it.
    var element: String? {
        var text = self
        if text.rest.unicodeScalars.first == "\u{FEFF}" { text.rest.unicodeScalars.removeFirst() }
        while true {
            text.rest = text.rest.drop(while: \.isWhitespace)
            if text.skip(from: "<?", to: "?>") || text.skip(from: "<!--", to: "-->") || text.skipDoctype() { continue }
            guard text.rest.first == "<" else { return nil }
            let name = text.rest.dropFirst().prefix { $0.isLetter || $0.isNumber || ":-_.".contains($0) }
            return name.split(separator: ":").last.map(String.init)
        }
    }

    /// Skips text between two delimiters, and returns `false` if the text does not begin here or is incomplete.
    private mutating func skip(from start: String, to end: String) -> Bool {
        guard rest.hasPrefix(start), let found = rest.dropFirst(start.count).firstRange(of: end) else { return false }
        rest = rest[found.upperBound...]
        return true
    }

    /// Skips the document type declaration with all of its content.
    private mutating func skipDoctype() -> Bool {
        guard rest.prefix(9).lowercased() == "<!doctype" else { return false }
        var (depth, quote): (Int, Character?) = (0, nil)
        for index in rest.indices {
            let letter = rest[index]
            if let open = quote {
                if letter == open { quote = nil }
                continue
            }
            switch letter {
            case "\"", "'": quote = letter
            case "[": depth += 1
            case "]": depth -= 1
            case ">" where depth <= 0:
                rest = rest[rest.index(after: index)...]
                return true
            default: break
            }
        }
        return false
    }
}
