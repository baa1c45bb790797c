// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

extension RequestBody {
    /// Creates a body that contains a value as JSON.
    ///
    /// ```swift
    /// struct Greeting: Encodable { var text = "Hello" }
    /// let body = try RequestBody.json(Greeting())
    /// ```
    ///
    /// - Parameters:
    ///   - value: The value to encode.
    ///   - encoder: The encoder that converts the value to JSON. The default encoder sorts the keys alphabetically, so
    ///     that the same value always results in the same bytes. A server that supports an ``IdempotencyKey`` might
    ///     reject a repeated request whose body differs from the original body.
    /// - Throws: A ``NetworkError`` with the code ``NetworkError/Code/bodyNotEncodable`` if the encoder cannot encode
    ///   the value.
    public static func json(
        _ value: some Encodable, encoder: JSONEncoder = .sorting
    ) throws(NetworkError) -> RequestBody {
        do {
            return RequestBody.data(try encoder.encode(value)).withContentType("application/json")
        } catch {
            throw .unencodable("JSON", error)
        }
    }

    /// Creates a body that contains a dictionary with values of different types as JSON.
    ///
    /// A value of the dictionary can be `nil`, `NSNull`, any `Encodable` value, or an array or a dictionary of these
    /// values. The default encoder sorts the keys alphabetically, so that the same dictionary always results in the
    /// same bytes.
    ///
    /// - Parameters:
    ///   - dictionary: The keys and values of the JSON object.
    ///   - encoder: The encoder that creates the JSON. The default is `nil`, which uses an encoder that sorts the keys.
    /// - Throws: A ``NetworkError`` with the code ``NetworkError/Code/bodyNotEncodable`` if the encoder cannot encode a
    ///   value.
    public static func json(
        _ dictionary: [String: Any?], encoder: JSONEncoder? = nil
    ) throws(NetworkError) -> RequestBody {
        try json(MixedValue(dictionary), encoder: encoder ?? .sorting)
    }
}

extension JSONEncoder {
    /// A new encoder that writes the same bytes for the same value.
    @usableFromInline static var sorting: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return encoder
    }
}

extension NetworkError {
    /// Returns an error that names the position of the value that could not be encoded, but never the value itself.
    static func unencodable(_ format: String, _ error: any Error) -> NetworkError {
        var reason = "a value cannot be encoded."
        if case .invalidValue(let value, let context)? = error as? EncodingError {
            let place = context.codingPath.map(\.stringValue).joined(separator: ".")
            reason = (place.isEmpty ? "" : "at \(place): ") + Self.refusal(of: value)
        } else if let error = error as? FormEncodingError {
            reason = error.message
        }
        var failure = NetworkError(
            code: .bodyNotEncodable, phase: .checking, message: "The body cannot be encoded as \(format): \(reason)",
            underlying: .init(domain: "\(type(of: error))", number: 0, text: reason))
        failure.cause = error
        return failure
    }

    /// Returns a reason based on the type of a value, because the text of the error may contain the value.
    private static func refusal(of value: Any) -> String {
        let isFinite =
            switch value {
            case let number as Double: number.isFinite
            case let number as Float: number.isFinite
            default: true
            }
        return isFinite
            ? "a value of the type \(type(of: value)) cannot be encoded." : "a number is not finite."
    }
}
