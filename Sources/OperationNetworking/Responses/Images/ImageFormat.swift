// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

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
