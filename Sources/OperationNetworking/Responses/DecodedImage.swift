// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(ImageIO)
    import CoreGraphics
    import ImageIO

    /// An image that the system has decoded.
    public struct DecodedImage: @unchecked Sendable {
        // Sendable: images of Core Graphics do not change.

        /// The image, which `UIImage(cgImage:)` and `NSImage(cgImage:size:)` take.
        public let cgImage: CGImage
    }

    extension ImageData {
        /// Has the system decode the image, here and now.
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

/// An image as a server sent it: its bytes, and what they are.
///
/// ```swift
/// func cover(of album: Int, at shop: NetworkBase) -> EndpointOperation<ImageData> {
///     shop.image("albums/\(album)/cover")
/// }
/// ```
///
/// Bytes that are no image, a page of an error, say, are refused. Foundation on Linux has nothing that decodes images; hand
/// the bytes to what you have. On Apple's systems `decoded()` makes an image of Core Graphics.
public struct ImageData: Sendable, Hashable {
    /// The bytes as they came.
    public let data: Data
    /// What they are, whatever the server said.
    public let format: ImageFormat

    /// Looks at the bytes.
    public init(_ data: Data) throws(NetworkError) {
        guard let format = ImageFormat(of: data) else {
            throw NetworkError(
                code: .undecodableResult, phase: .evaluating,
                message: "The body is no image of a kind that is known. Is the address right?")
        }
        self.data = data
        self.format = format
    }
}

/// What kind of image some bytes are, by their beginning.
public struct ImageFormat: Sendable, Hashable, CustomStringConvertible {
    /// The type by which servers call it: `image/png`.
    public let mediaType: String

    /// PNG.
    public static let png = ImageFormat(mediaType: "image/png")
    /// JPEG.
    public static let jpeg = ImageFormat(mediaType: "image/jpeg")
    /// GIF.
    public static let gif = ImageFormat(mediaType: "image/gif")
    /// WebP.
    public static let webP = ImageFormat(mediaType: "image/webp")
    /// HEIC, and HEIF of other kinds.
    public static let heic = ImageFormat(mediaType: "image/heic")
    /// AVIF.
    public static let avif = ImageFormat(mediaType: "image/avif")
    /// TIFF.
    public static let tiff = ImageFormat(mediaType: "image/tiff")
    /// BMP.
    public static let bmp = ImageFormat(mediaType: "image/bmp")
    /// An icon of Windows and of web pages.
    public static let icon = ImageFormat(mediaType: "image/x-icon")
    /// SVG, which is text.
    public static let svg = ImageFormat(mediaType: "image/svg+xml")

    /// The type.
    public var description: String { mediaType }

    private init(mediaType: String) {
        self.mediaType = mediaType
    }

    /// Looks at the beginning of the bytes; nil if they are no image of a kind that is known.
    public init?(of data: Data) {
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
        } else if MarkupStart(bytes).element == "svg" {
            self = .svg
        } else {
            return nil
        }
    }

    private static let looksAt = 1_024

    private static let signatures: [(bytes: [UInt8], format: ImageFormat)] = [
        ([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A], .png), ([0xFF, 0xD8, 0xFF], .jpeg),
        (Array("GIF87a".utf8), .gif), (Array("GIF89a".utf8), .gif), ([0x49, 0x49, 0x2A, 0], .tiff),
        ([0x4D, 0x4D, 0, 0x2A], .tiff), ([0, 0, 1, 0], .icon),
    ]

    private static let brands: [String: ImageFormat] = [
        "heic": .heic, "heix": .heic, "heim": .heic, "heis": .heic, "mif1": .heic, "avif": .avif, "avis": .avif,
    ]

    /// How long the second header of a BMP may be, which says of which version it is.
    private static let bitmapHeaders: Set = [12, 16, 40, 52, 56, 64, 108, 124]

    /// Two letters alone may begin any text.
    private static func isBitmap(_ bytes: [UInt8]) -> Bool {
        guard bytes.starts(with: "BM".utf8), bytes.count >= 18 else { return false }
        func number(at place: Int) -> Int { bytes[place..<place + 4].reversed().reduce(0) { $0 << 8 | Int($1) } }
        let header = number(at: 14)
        return bitmapHeaders.contains(header) && number(at: 10) >= 14 + header
    }
}

/// The beginning of a text of XML or HTML, read up to its first element.
struct MarkupStart {
    private var rest: Substring

    init(_ bytes: [UInt8]) {
        rest = String(decoding: bytes, as: UTF8.self)[...]
    }

    /// The name of the first element, without its prefix; nil if something else comes before it than XML allows there.
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

    /// Skips what begins and ends so; false if it does not begin here, or its end is not there.
    private mutating func skip(from start: String, to end: String) -> Bool {
        guard rest.hasPrefix(start), let found = rest.dropFirst(start.count).firstRange(of: end) else { return false }
        rest = rest[found.upperBound...]
        return true
    }

    /// Skips the declaration of the document's type, with all that is declared within it.
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
