// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

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
