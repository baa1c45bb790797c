// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

extension Endpoint where ResultType == ImageData {
    /// Asks for an image.
    public static func image(_ path: String, _ query: [String: (any Sendable)?] = [:]) -> Self {
        image(path, query) { $0 }
    }
}

extension Endpoint {
    /// Asks for an image, and has it decoded by what you have for that, on the thread of the evaluation.
    ///
    /// The image is `decode`'s to make and the operation's to give: a type of a library of yours, a size, a thumbnail.
    public static func image(
        _ path: String, _ query: [String: (any Sendable)?] = [:],
        decode: @escaping @Sendable (ImageData) throws -> ResultType
    ) -> Self {
        Endpoint("GET", path, query: query, headers: ["Accept": "image/*"]) { data, _, _ in
            try decode(try ImageData(data))
        }
    }
}

extension NetworkBase {
    /// Asks for an image.
    public func image(_ path: String, _ query: [String: (any Sendable)?] = [:]) -> EndpointOperation<ImageData> {
        operation(for: .image(path, query))
    }
}

#if canImport(ImageIO)
    extension Endpoint where ResultType == DecodedImage {
        /// Asks for an image, and has the system decode it, on the thread of the evaluation.
        public static func decodedImage(_ path: String, _ query: [String: (any Sendable)?] = [:]) -> Self {
            image(path, query) { try $0.decoded() }
        }
    }
#endif
