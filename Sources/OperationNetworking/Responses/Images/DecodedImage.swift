// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if canImport(ImageIO)
    import CoreGraphics
    import Foundation
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
